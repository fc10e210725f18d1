package inside

// A located is an error and the thing it happened to. It replaces fmt.Errorf, because package fmt is not initialised
// this early.
type located struct {
	what string
	err  error
}

// on adds to an error what it happened to.
func on(what string, err error) error { return &located{what, err} }

func (l *located) Error() string { return l.what + ": " + l.err.Error() }
func (l *located) Unwrap() error { return l.err }
