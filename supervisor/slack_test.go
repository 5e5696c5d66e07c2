//go:build !race

package supervisor

import "time"

// slack is how much later than its time limit an answer may come (SPEC 13.2).
const slack = 500 * time.Millisecond
