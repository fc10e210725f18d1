package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/pollux-companion/pollux/internal/safefile"
)

// An IndexEntry is one extension of an index.
type IndexEntry struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Version     string   `json:"version,omitempty"`
	Source      string   `json:"source"` // the argument for install
	Keywords    []string `json:"keywords,omitempty"`
}

// gallery is an entry in the form of the CLI's own gallery.
type gallery struct {
	Name        string `json:"extensionName"`
	Description string `json:"extensionDescription"`
	About       string `json:"repoDescription"`
	Version     string `json:"extensionVersion"`
	URL         string `json:"url"`
}

// ReadIndex reads an index file: a list, or an object with a list "extensions". Entries have pollux's form ({name,
// description, version, source, keywords}) or that of the CLI's gallery. Entries without a name or source are left
// out.
func ReadIndex(file string) ([]IndexEntry, error) {
	data, err := readSmall(file)
	if err != nil {
		return nil, fmt.Errorf("the index %q cannot be read: %w", file, safefile.Cause(err))
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		var object struct {
			Extensions []json.RawMessage `json:"extensions"`
		}
		if json.Unmarshal(data, &object) != nil || object.Extensions == nil {
			return nil, &brokenFile{file, "it is neither a list of extensions nor an object with one", "name an index file"}
		}
		list = object.Extensions
	}
	var all []IndexEntry
	for _, raw := range list {
		var e IndexEntry
		if err := json.Unmarshal(raw, &e); err != nil || e.Name == "" || e.Source == "" {
			var g gallery
			if json.Unmarshal(raw, &g) != nil || g.Name == "" || g.URL == "" {
				continue
			}
			e = IndexEntry{Name: g.Name, Description: g.Description, Version: g.Version, Source: g.URL}
			if e.Description == "" {
				e.Description = g.About
			}
		}
		all = append(all, e)
	}
	if len(all) == 0 && len(list) > 0 {
		return nil, errors.New("the index " + file + " holds no entry with a name and a source")
	}
	return all, nil
}

// Search returns the entries that contain every word, best first: matches in the name, then in the keywords, then in
// the description. Case is ignored.
func Search(all []IndexEntry, words []string) []IndexEntry {
	type hit struct {
		IndexEntry
		score int
	}
	var hits []hit
	for _, e := range all {
		score := 0
		for _, w := range words {
			n := e.score(strings.ToLower(w))
			if n == 0 {
				score = 0
				break
			}
			score += n
		}
		if score > 0 || len(words) == 0 {
			hits = append(hits, hit{e, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			return b.score - a.score
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := make([]IndexEntry, len(hits))
	for i, h := range hits {
		out[i] = h.IndexEntry
	}
	return out
}

// score says how well a word in lower case matches; 0 for not at all.
func (e IndexEntry) score(word string) int {
	name := strings.ToLower(e.Name)
	split := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	switch {
	case name == word:
		return 16
	case slices.Contains(strings.FieldsFunc(name, split), word):
		return 8
	case strings.Contains(name, word):
		return 6
	}
	for _, k := range e.Keywords {
		if strings.EqualFold(k, word) {
			return 5
		}
	}
	description := strings.ToLower(e.Description)
	switch {
	case slices.Contains(strings.FieldsFunc(description, split), word):
		return 3
	case strings.Contains(description, word):
		return 1
	}
	return 0
}
