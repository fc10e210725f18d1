package idetools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pollux-companion/pollux/internal/control"
	"github.com/pollux-companion/pollux/internal/core/state"
	"github.com/pollux-companion/pollux/internal/paths"
	"github.com/pollux-companion/pollux/internal/safefile"
	"github.com/pollux-companion/pollux/internal/words"
	"github.com/pollux-companion/pollux/internal/workspace"
)

// maxFile bounds the files of a diff, in bytes.
const maxFile = 16 << 20

type openFileArgs struct {
	FilePath          string `json:"filePath"`
	Line              int    `json:"line"`
	StartText         string `json:"startText"`
	EndText           string `json:"endText"`
	Preview           bool   `json:"preview"`
	SelectToEndOfLine bool   `json:"selectToEndOfLine"`
	MakeFrontmost     *bool  `json:"makeFrontmost"`
}

func (t *tools) openFile(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	var a openFileArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	path := paths.OfText(a.FilePath)
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.o.Folder, path)
	}
	if !inside(c, path) {
		return nil, outside(path, c)
	}
	l := control.Location{Path: path, TakeFocus: a.MakeFrontmost == nil || *a.MakeFrontmost}
	if a.Line > 0 {
		l.Position = &state.Position{Line: a.Line - 1}
	} else if a.StartText != "" {
		text, err := read(path)
		if err != nil {
			return nil, err
		}
		at := strings.Index(text, a.StartText)
		if at < 0 {
			return nil, fmt.Errorf("the file %q does not hold the text %q", path, words.Shorten(a.StartText, 80))
		}
		l.Position = &state.Position{Line: strings.Count(text[:at], "\n")}
	}
	if err := c.Open(ctx, l); err != nil {
		return nil, err
	}
	return []string{"Opened file: " + path}, nil
}

// inside reports whether a path lies in a folder that the companion serves. A path behind a dangling link does not.
func inside(c *control.Client, path string) bool {
	real, err := paths.Resolve(filepath.Clean(path))
	return err == nil && slices.ContainsFunc(c.Status.Roots, func(root string) bool { return paths.Within(root, real) })
}

func outside(path string, c *control.Client) error {
	return fmt.Errorf("%q lies outside of the folders that the editor has open (%s)", path, strings.Join(c.Status.Roots, ", "))
}

// read reads a text file; a missing one is fs.ErrNotExist.
func read(path string) (string, error) {
	data, _, err := safefile.ReadRegular(path, maxFile)
	if errors.Is(err, safefile.ErrNotRegular) || errors.Is(err, safefile.ErrTooBig) {
		return "", fmt.Errorf("%q is no file of at most %d bytes: %w", path, maxFile, err)
	}
	if err == nil && !utf8.Valid(data) {
		err = fmt.Errorf("%q is no text in UTF-8", path)
	}
	return string(data), err
}

type openDiffArgs struct {
	OldFilePath string `json:"old_file_path"`
	NewFilePath string `json:"new_file_path"`
	NewContents string `json:"new_file_contents"`
	TabName     string `json:"tab_name"`
}

func (t *tools) openDiff(ctx context.Context, c *control.Client, args json.RawMessage) (any, error) {
	var a openDiffArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	oldPath, path := paths.OfText(a.OldFilePath), paths.OfText(a.NewFilePath)
	for _, p := range []string{oldPath, path} {
		if !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%q is not absolute; give the whole path", p)
		}
		if !inside(c, p) {
			return nil, outside(p, c)
		}
	}
	old, err := read(oldPath)
	isNew := errors.Is(err, fs.ErrNotExist)
	if err != nil && !isNew {
		return nil, err
	}
	answer, err := c.Propose(ctx, control.Proposal{Path: path, Old: old, IsNew: isNew, New: a.NewContents}, nil)
	if err != nil {
		return nil, err
	}
	if !answer.Accepted {
		return []string{"DIFF_REJECTED", a.TabName}, nil
	}
	if t.o.Write {
		w, err := workspace.New(c.Status.Roots, nil)
		if err != nil {
			return nil, err
		}
		if err := w.WriteFile(path, []byte(answer.Content)); err != nil {
			return nil, fmt.Errorf("the user accepted the text, but it could not be written: %w", err)
		}
	}
	return []string{"FILE_SAVED", answer.Content}, nil
}
