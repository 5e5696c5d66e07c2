package workerproto

import "testing"

func TestBudgetIsSpentToTheLastByteAndNoFurther(t *testing.T) { // SPEC 9.2
	const most = 1<<64 - 1
	for _, c := range []struct {
		name        string
		limit, used uint64
		cost        uint64
		ok          bool
		left        uint64
	}{
		{"nothing of nothing", 0, 0, 0, true, 0},
		{"a byte of nothing", 0, 0, 1, false, 0},
		{"one below", 1024, 0, 1023, true, 1},
		{"exactly", 1024, 0, 1024, true, 0},
		{"one above", 1024, 0, 1025, false, 1024},
		{"the last byte", 1024, 1023, 1, true, 0},
		{"past the last byte", 1024, 1023, 2, false, 1},
		{"nothing, when all is spent", 1024, 1024, 0, true, 0},
		{"a byte, when all is spent", 1024, 1024, 1, false, 0},
		{"a sum that overflows", most, most - 1, 2, false, 1},
		{"the largest cost", most, 0, most, true, 0},
		{"the largest cost, later", most, 1, most, false, most - 1},
		{"more used than allowed", 10, 11, 1, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Budget{Limit: c.limit, Used: c.used}
			if ok := b.Spend(c.cost); ok != c.ok {
				t.Errorf("Spend(%d) of %d with %d used: got %v, want %v", c.cost, c.limit, c.used, ok, c.ok)
			}
			if left := b.Left(); left != c.left {
				t.Errorf("left: got %d, want %d", left, c.left)
			}
			if !c.ok && b.Used != c.used {
				t.Errorf("a refused cost was taken: %d used, want %d", b.Used, c.used)
			}
		})
	}
}

// The cost of an item is what it adds to the array that the model is given.
func TestItemCostsWhatItsJSONAddsToTheResult(t *testing.T) {
	for kind, shown := range map[string]string{
		"text": `{"type":"text","text":"hé"},`,
		"json": `{"type":"json","value":"hé"},`,
	} {
		if got, want := ItemCost(kind, []byte(`"hé"`)), uint64(len(shown)); got != want {
			t.Errorf("%s: got %d, want %d", kind, got, want)
		}
	}
}
