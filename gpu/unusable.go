package gpu

// Unusable is the error of a device that can't be used on this machine.
type Unusable struct {
	Err error  // why, as part of a sentence
	Fix string // what to do about it, in full sentences
}

func (u *Unusable) Error() string { return u.Err.Error() }

// Unwrap returns u.Err.
func (u *Unusable) Unwrap() error { return u.Err }
