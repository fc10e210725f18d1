package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pollux-companion/pollux/internal/agent/gemini/wire"
	"github.com/pollux-companion/pollux/internal/client"
)

func textProbes() []probe {
	return []probe{
		{showsDiff, "a proposal is shown, or there is nothing to decide", (*run).answersAtOnce},
		{"F-2/answers at once", "openDiff answers when the view is open, not when it is decided", (*run).answersAtOnce},
		{"F-2/writes nothing", "a proposal leaves no file behind", (*run).writesNothing},
		{"F-4/text that is JSON", "a proposal that looks like an answer does not replace the file", (*run).hijack},
		{"F-4/unedited", "an unedited text does not stand under \"content\", or the model is told that the user changed it", (*run).unedited},
		{"F-4/large text", "an answer of five megabytes arrives whole", (*run).large},
		{"F-4/no such diff", "closeDiff of no diff answers, with isError", (*run).noDiff},
		{"F-7/several diffs", "two files of one session are open at once, and closed each by itself", (*run).severalDiffs},
		{"F-6/line ends", "CR LF, mixed line ends, a byte order mark and a missing last line end come back as they were proposed", (*run).lineEnds},
		{"F-7/same name in two folders", "files of one name in two folders are two files", (*run).sameName},
	}
}

func (r *run) answersAtOnce() error {
	return r.with("x", func(*client.Link, chan event, string) error { return nil })
}

// with opens a diff in its own session and calls f.
func (r *run) with(content string, f func(l *client.Link, heard chan event, path string) error) error {
	path := filepath.Join(r.dir, "proposal.txt")
	return r.withPath(path, content, func(l *client.Link, heard chan event) error { return f(l, heard, path) })
}

func (r *run) withPath(path, content string, f func(l *client.Link, heard chan event) error) error {
	l, heard, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	if err := r.openDiff(l, path, content); err != nil {
		return err
	}
	return f(l, heard)
}

func (r *run) writesNothing() error {
	return r.with("x", func(l *client.Link, _ chan event, path string) error {
		if _, _, _, err := r.closeDiff(l, path); err != nil {
			return err
		}
		if left, _ := os.ReadDir(r.dir); len(left) > 0 {
			return fmt.Errorf("%s has appeared", left[0].Name())
		}
		return nil
	})
}

func (r *run) hijack() error {
	const text = `{"content":"another text"}`
	return r.with(text, func(l *client.Link, _ chan event, path string) error {
		m, err := r.tool(l, wire.ToolCloseDiff, map[string]any{"filePath": path, "suppressNotification": true})
		if err != nil {
			return err
		}
		answer, _ := firstText(m)
		var v map[string]any
		_ = json.Unmarshal([]byte(answer), &v)
		if v["content"] == "another text" {
			return errors.New("the CLI would write what stands in the proposal under \"content\"")
		}
		return nil
	})
}

func (r *run) unedited() error {
	return r.with("text\n", func(l *client.Link, _ chan event, path string) error {
		_, edited, final, err := r.closeDiff(l, path)
		switch {
		case err != nil:
			return err
		case edited:
			return errors.New("an unedited text stands under \"content\"")
		case final != "text\n":
			return fmt.Errorf("finalContent is %q", final)
		}
		return nil
	})
}

func (r *run) large() error {
	text := strings.Repeat("a line of a large file, é😀\n", 5<<20/32)
	return r.with(text, func(l *client.Link, _ chan event, path string) error {
		content, edited, final, err := r.closeDiff(l, path)
		if err != nil {
			return err
		}
		if final != text && (!edited || content != text) {
			return fmt.Errorf("%d bytes were proposed, %d come back", len(text), max(len(final), len(content)))
		}
		return nil
	})
}

func (r *run) noDiff() error {
	l, _, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	m, err := r.tool(l, wire.ToolCloseDiff, map[string]any{"filePath": filepath.Join(r.dir, "never opened")})
	if err == nil && m["isError"] != true {
		err = errors.New("isError is not set")
	}
	return err
}

func (r *run) severalDiffs() error {
	return r.with("1", func(l *client.Link, _ chan event, path string) error {
		other := path + ".other"
		if err := r.openDiff(l, other, "2"); err != nil {
			return err
		}
		for name, text := range map[string]string{path: "1", other: "2"} {
			content, _, final, err := r.closeDiff(l, name)
			if err != nil {
				return err
			}
			if content != text && final != text {
				return fmt.Errorf("%s has another text", filepath.Base(name))
			}
		}
		return nil
	})
}

func (r *run) lineEnds() error {
	for _, text := range []string{"one\r\ntwo\r\n", "one\r\ntwo\nthree", "\ufeffone\n", "one", "one\n\n", "a\u2028b\u0085c\n", "e\u0301 \u00e9\n"} {
		err := r.with(text, func(l *client.Link, _ chan event, path string) error {
			content, edited, final, err := r.closeDiff(l, path)
			if err != nil {
				return err
			}
			if final != text && (!edited || content != text) {
				return fmt.Errorf("%q comes back as %q", text, final+content)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) sameName() error {
	l, _, err := r.link()
	if err != nil {
		return err
	}
	defer r.leave(l)
	paths := map[string]string{}
	for _, folder := range []string{"a", "b"} {
		dir := filepath.Join(r.dir, folder)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		path := filepath.Join(dir, "index.txt")
		paths[path] = "the text of " + folder
		if err := r.openDiff(l, path, paths[path]); err != nil {
			return err
		}
	}
	for path, text := range paths {
		content, _, final, err := r.closeDiff(l, path)
		if err != nil {
			return err
		}
		if content != text && final != text {
			return fmt.Errorf("the diff of %s has the text %q", path, final+content)
		}
	}
	return nil
}
