package lsp

import "github.com/pollux-companion/pollux/internal/core/review"

// Bounds on the texts that are kept of one view.
const (
	maxTexts     = 16
	maxTextBytes = 4 << 20 // of all but the first and the newest
)

// texts are those that an editor may have on its screen: what it has made last, and what it was told since then, each under the
// version that the editor knows it by. What it was told before, and had not taken over when it sent its last edit, it leaves alone.
// So an edit is merged on the text that it was made of, however much has happened since.
type texts []versioned

type versioned struct {
	version int
	text    string
}

// edited notes what the editor has made of a version, or was shown.
func (t *texts) edited(from int, text string) { *t = texts{{from, text}} }

// told adds what the editor is told.
func (t *texts) told(now review.State) {
	*t = append(*t, versioned{now.Seen.Text, now.Text})
	for size, i := 0, len(*t)-2; i > 0; i-- {
		if size += len((*t)[i].text); size > maxTextBytes || len(*t)-i >= maxTexts {
			*t = append((*t)[:1:1], (*t)[i+1:]...)
			return
		}
	}
}

// of is the text that the editor has when it names a version, nil when that is not known any more.
func (t texts) of(version int) *string {
	for i := range t {
		if t[i].version == version {
			return &t[i].text
		}
	}
	return nil
}
