//go:build race

package supervisor

import "time"

// slack is wider under the race detector, which slows the supervisor down by a factor of
// ten and its workers, which are this binary, too.
const slack = 5 * time.Second
