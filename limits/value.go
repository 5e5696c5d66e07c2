package limits

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// reset puts the field's default into c.
func (f *field) reset(c *Config) {
	switch d := f.Default.(type) {
	case bool:
		*f.ref(c).(*bool) = d
	case int64:
		f.putInt(c, d)
	case string:
		f.putText(c, d)
	case []string:
		f.putList(c, d)
	}
}

// read puts v into c. A whole number outside the range is clamped and said.
func (f *field) read(c *Config, v *json5.Value) (*Warning, error) {
	switch {
	case f.Type == "boolean" && v.Kind == json5.Bool:
		*f.ref(c).(*bool) = v.Text == "true"
		return nil, nil
	case f.Type == "integer" && v.Kind == json5.Number:
		n, whole := wholeNumber(v.Text)
		if !whole {
			return nil, f.reject(v, "a whole number")
		}
		return f.clamp(c, v, n), nil
	case f.Type == "string" && v.Kind == json5.String:
		if len(f.Enum) > 0 && !slices.Contains(f.Enum, v.Text) {
			return nil, f.reject(v, oneOf(f.Enum))
		}
		if f.check != nil && !f.check(v.Text) || strings.ContainsRune(v.Text, 0) {
			return nil, f.reject(v, f.describe())
		}
		f.putText(c, v.Text)
		return nil, nil
	case f.Type == "array" && v.Kind == json5.Array:
		return nil, f.readList(c, v)
	}
	err := f.reject(v, f.describe())
	err.Nearest = "" // the type is wrong, not the spelling
	return nil, err
}

func (f *field) readList(c *Config, v *json5.Value) error {
	list := []string{}
	for i := range v.Items {
		item := &v.Items[i]
		known := len(f.Enum) == 0 && item.Text != "" || slices.Contains(f.Enum, item.Text)
		if item.Kind != json5.String || !known {
			err := f.reject(item, f.describeItem())
			err.Field += "[" + strconv.Itoa(i) + "]"
			return err
		}
		if !slices.Contains(list, item.Text) { // it is a set; saying it twice changes nothing
			list = append(list, item.Text)
		}
	}
	if len(list) == 0 && len(f.Enum) > 0 {
		return f.reject(v, "a list with at least one of "+strings.TrimPrefix(oneOf(f.Enum), "one of "))
	}
	f.putList(c, list)
	return nil
}

func (f *field) clamp(c *Config, v *json5.Value, n int64) *Warning {
	bounded := min(max(n, f.Min), f.Max)
	f.putInt(c, bounded)
	if bounded == n {
		return nil
	}
	return &Warning{Field: f.Path, Value: shorten(v.Text), Used: bounded, Bound: f.bound(n)}
}

// bound names the end of the range that n is past.
func (f *field) bound(n int64) string {
	if n < f.Min {
		return fmt.Sprintf("below the minimum %d", f.Min)
	}
	return fmt.Sprintf("above the maximum %d", f.Max)
}

func (f *field) putInt(c *Config, n int64) {
	switch p := f.ref(c).(type) {
	case *int:
		*p = int(n)
	case *int64:
		*p = n
	case *uint32:
		*p = uint32(n)
	case *time.Duration:
		*p = time.Duration(n) * f.unit
	}
}

func (f *field) putText(c *Config, s string) {
	if f.ref == nil { // one legal value: nothing to keep
		return
	}
	switch p := f.ref(c).(type) {
	case *bool:
		*p = f.boolFor[s]
	case *string:
		if f.check != nil { // a hash: one spelling, so that hashes compare as texts
			s = strings.ToLower(s)
		}
		*p = s
	}
}

func (f *field) putList(c *Config, list []string) {
	switch p := f.ref(c).(type) {
	case *Languages:
		*p = 0
		for i, name := range languageNames {
			if slices.Contains(list, name) {
				*p |= 1 << i
			}
		}
	case *[]string:
		*p = slices.Clone(list)
	}
}

// get returns the field's value in c as bool, int64, string or []string: the
// form of [Field.Default].
func (f *field) get(c *Config) any {
	if f.ref == nil {
		return f.Default
	}
	switch p := f.ref(c).(type) {
	case *bool:
		for text, b := range f.boolFor {
			if b == *p {
				return text
			}
		}
		return *p
	case *int:
		return int64(*p)
	case *int64:
		return *p
	case *uint32:
		return int64(*p)
	case *time.Duration:
		return int64(*p / f.unit)
	case *string:
		return *p
	case *Languages:
		return p.Names()
	case *[]string:
		return append([]string{}, *p...)
	}
	return nil
}

// wholeNumber reads a JSON number literal. 5000, 5e3 and 5000.0 are whole, 0.5
// and NaN are not; what does not fit becomes the nearest int64, which every range
// clamps further. The exponent is not trusted: nothing is computed with it.
func wholeNumber(text string) (n int64, whole bool) {
	digits, negative := strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(digits), "e")
	integer, fraction, _ := strings.Cut(mantissa, ".")
	digits = strings.TrimLeft(integer+fraction, "0")
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false // NaN, Infinity
	}
	if digits == "" {
		return 0, true
	}
	scale := 0
	if exponent != "" {
		var err error
		if scale, err = strconv.Atoi(exponent); err != nil {
			scale = math.MaxInt32 // out of an int's range, so is the number out of ours
			if exponent[0] == '-' {
				scale = -scale
			}
		}
		scale = min(max(scale, -math.MaxInt32), math.MaxInt32)
	}
	scale -= len(fraction)
	short := strings.TrimRight(digits, "0")
	scale += len(digits) - len(short)
	if scale < 0 {
		return 0, false
	}
	n = math.MaxInt64
	if len(short)+scale < 19 {
		n, _ = strconv.ParseInt(short+strings.Repeat("0", scale), 10, 64)
	}
	if negative {
		n = -n
	}
	return n, true
}
