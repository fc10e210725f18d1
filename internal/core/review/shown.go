package review

// Bounds on the texts that are kept for one view.
const (
	maxTexts     = 256
	maxTextBytes = 4 << 20 // of all but the first and the newest
)

// Shown holds the texts of a diff that one view may have on its screen, each under the version that the view knows: the text that its
// user made last, and the texts that the view was told since then. When the view sends its next edit, Of finds the text on
// which the user made it, so the edit is merged correctly however much has happened since (Edit.Was). The zero value is empty.
// Shown has no lock: its owner guards it.
type Shown []versioned

type versioned struct {
	version int
	text    string
}

// Edited notes the text that the user has made of a version, or was shown first. Older texts are forgotten.
func (t *Shown) Edited(from int, text string) { *t = Shown{{from, text}} }

// Told adds a text that the view is told. Beyond the bounds it forgets from the middle: the first text is the user's
// own, from which the next edit most likely comes, and the newest is what the view shows in a moment.
func (t *Shown) Told(now State) {
	if last := len(*t) - 1; last > 0 && (*t)[last].version == now.Seen.Text {
		return
	}
	*t = append(*t, versioned{now.Seen.Text, now.Text})
	for size, i := 0, len(*t)-2; i > 0; i-- {
		if size += len((*t)[i].text); size > maxTextBytes || len(*t)-i >= maxTexts {
			*t = append((*t)[:1:1], (*t)[i+1:]...) // a new array, so that the forgotten texts are free
			return
		}
	}
}

// Of returns the text that the view has when it names a version; nil when that version is forgotten.
func (t Shown) Of(version int) *string {
	for i := range t {
		if t[i].version == version {
			return &t[i].text
		}
	}
	return nil
}
