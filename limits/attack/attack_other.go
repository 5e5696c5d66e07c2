//go:build !linux

package attack

import "errors"

// attacks is empty: the layers that would refuse them are Linux's.
func attacks() []Attack { return nil }

// Run fails: there are no attacks here.
func Run(string) (outcome string, err error) {
	return "", errors.New("attacks need Linux")
}
