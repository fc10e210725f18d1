package review

// Bounds on the texts that are kept of one view.
const (
	maxTexts     = 256
	maxTextBytes = 4 << 20 // of all but the first and the newest
)

// Shown are the texts of a diff that one view may have on its screen: what its user has made last, and what it was told since then,
// each under the version that the view knows it by. What it was told before, and had not taken over when it sent its last edit, it
// leaves alone. So an edit is merged on the text that it was made of, however much has happened since; see Edit.Was. The zero
// value has none. The caller guards it.
type Shown []versioned

type versioned struct {
	version int
	text    string
}

// Edited notes what the user has made of a version, or was shown first.
func (t *Shown) Edited(from int, text string) { *t = Shown{{from, text}} }

// Told adds what the view is told.
func (t *Shown) Told(now State) {
	if last := len(*t) - 1; last > 0 && (*t)[last].version == now.Seen.Text {
		return
	}
	*t = append(*t, versioned{now.Seen.Text, now.Text})
	for size, i := 0, len(*t)-2; i > 0; i-- {
		if size += len((*t)[i].text); size > maxTextBytes || len(*t)-i >= maxTexts {
			*t = append((*t)[:1:1], (*t)[i+1:]...)
			return
		}
	}
}

// Of is the text that the view has when it names a version, nil when that is not known any more.
func (t Shown) Of(version int) *string {
	for i := range t {
		if t[i].version == version {
			return &t[i].text
		}
	}
	return nil
}
