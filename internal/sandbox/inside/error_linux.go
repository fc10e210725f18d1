package inside

// A located is an error with what it happened to. Package fmt would have to be
// initialised first.
type located struct {
	what string
	err  error
}

// on says what an error happened to.
func on(what string, err error) error { return &located{what, err} }

func (l *located) Error() string { return l.what + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }
