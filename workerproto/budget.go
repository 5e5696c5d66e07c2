package workerproto

// Budget counts output, value and error of a run against maxOutputBytes: the bytes of
// their compact JSON as the result shows it (SPEC 9.2). The worker spends it to stop a
// guest at once; the supervisor spends its own and takes more than that for a lie.
type Budget struct {
	Limit uint64
	Used  uint64
}

// Left is what can still be spent.
func (b *Budget) Left() uint64 { return b.Limit - min(b.Limit, b.Used) }

// Spend takes cost if that much is left.
func (b *Budget) Spend(cost uint64) bool {
	if cost > b.Left() {
		return false
	}
	b.Used += cost
	return true
}

// itemFrame is what stands around an item's JSON in the result, with the comma behind it.
var itemFrame = map[string]int{
	"text": len(`{"type":"text","text":},`),
	"json": len(`{"type":"json","value":},`),
}

// ItemCost is what an output item costs.
func ItemCost(kind string, json []byte) uint64 { return uint64(itemFrame[kind] + len(json)) }
