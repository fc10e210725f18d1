package source

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"runtime"
	"strings"
	"time"
)

// release is GitHub's description of a release.
type release struct {
	Tag     string  `json:"tag_name"`
	Tarball string  `json:"tarball_url"`
	Zipball string  `json:"zipball_url"`
	Assets  []asset `json:"assets"`
}

type asset struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// Digest is "sha256:" and the file's hash in hexadecimal, if GitHub knows it.
	Digest string `json:"digest"`
}

// errNoRelease means that the repository has no release (of that tag); git then fetches it.
var errNoRelease = errors.New("no release")

// github uses the releases API as the CLI does.
type github struct {
	base   string // of the API, without a final slash
	token  string // the user's, "" for none; sent only to base's host
	client *http.Client

	progress io.Writer // of long downloads, nil for none
}

func newGitHub(o *Options) *github {
	base := o.GitHubAPI
	if base == "" {
		base = os.Getenv("GITHUB_API_URL")
	}
	if base == "" {
		base = "https://api.github.com"
	}
	token := os.Getenv("GITHUB_TOKEN")
	if token == "" {
		token = os.Getenv("GH_TOKEN")
	}
	return &github{base: strings.TrimSuffix(base, "/"), token: token, client: &http.Client{Timeout: 10 * time.Minute, CheckRedirect: noDowngrade}, progress: o.Progress}
}

// noDowngrade follows redirects, but never from https to http, so neither the token nor the file is sent unencrypted.
func noDowngrade(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("too many redirects")
	}
	if from := via[len(via)-1].URL; from.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%s redirects to %q, which is not an https address", from.Host, req.URL.Redacted())
	}
	return nil
}

// get fetches at most limit bytes from an address into w.
func (g *github) get(ctx context.Context, address, accept string, w io.Writer, limit int64) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "pollux")
	req.Header.Set("Accept", accept)
	if base, err := url.Parse(g.base); err == nil && g.token != "" && req.URL.Host == base.Host {
		req.Header.Set("Authorization", "Bearer "+g.token) // net/http drops it when redirected to another host
	}
	res, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound:
		return errNoRelease
	case res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s answers %s (a limit on requests without a token: set GITHUB_TOKEN)", req.URL.Host, res.Status)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s", req.URL.Host, res.Status)
	}
	body := &counter{r: io.LimitReader(res.Body, limit+1), progress: g.progress}
	n, err := io.Copy(w, body)
	if err != nil {
		return err
	}
	if n > limit {
		return refuse(path.Base(req.URL.Path), "has more than %d MiB", limit>>20)
	}
	return nil
}

// find returns the release of tag, or the newest one.
func (g *github) find(ctx context.Context, repo, tag string, pre bool) (release, error) {
	base := g.base + "/repos/" + repo + "/releases"
	var one release
	if tag != "" {
		return one, g.json(ctx, base+"/tags/"+url.PathEscape(tag), &one)
	}
	if !pre {
		if err := g.json(ctx, base+"/latest", &one); err == nil || !errors.Is(err, errNoRelease) {
			return one, err
		}
	}
	var list []release
	if err := g.json(ctx, base+"?per_page=1", &list); err != nil {
		return one, err
	}
	if len(list) == 0 {
		return one, errNoRelease
	}
	return list[0], nil
}

func (g *github) json(ctx context.Context, address string, into any) error {
	var text strings.Builder
	if err := g.get(ctx, address, "application/vnd.github+json", &text, 8<<20); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text.String()), into); err != nil {
		return fmt.Errorf("%s does not answer in the form of GitHub's API: %w", address, err)
	}
	return nil
}

// choose picks the download as the CLI does: the asset for this platform and architecture, the asset for this
// platform, the only asset if it is for all, otherwise the sources.
func (r release) choose(platform, arch string) (address, accept string, err error) {
	const octets = "application/octet-stream"
	for _, prefix := range []string{platform + "." + arch + ".", platform + "."} {
		for _, a := range r.Assets {
			if strings.HasPrefix(strings.ToLower(a.Name), prefix) {
				return a.URL, octets, nil
			}
		}
	}
	if len(r.Assets) == 1 {
		name := strings.ToLower(r.Assets[0].Name)
		if !strings.Contains(name, "darwin") && !strings.Contains(name, "linux") && !strings.Contains(name, "win32") {
			return r.Assets[0].URL, octets, nil
		}
	}
	for _, ball := range []string{r.Tarball, r.Zipball} {
		if ball != "" {
			return ball, "application/vnd.github+json", nil
		}
	}
	return "", "", fmt.Errorf("the release %q has nothing to download for %s %s", r.Tag, platform, arch)
}

// nodeNames are the systems and architectures with another name in Node, whose names release files use, than in Go.
var nodeNames = map[string]string{"windows": "win32", "amd64": "x64", "386": "ia32"}

func inNode(name string) string { return cmp.Or(nodeNames[name], name) }

// download fetches the chosen file of r into the file dest.
func (g *github) download(ctx context.Context, r release, dest string, limit int64) error {
	address, accept, err := r.choose(inNode(runtime.GOOS), inNode(runtime.GOARCH))
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && !strings.HasPrefix(g.base, "http://") {
		return fmt.Errorf("the release %q is to be downloaded from %q, which is not an https address", r.Tag, address)
	}
	f, err := os.OpenFile(dest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := g.get(ctx, address, accept, io.MultiWriter(f, sum), limit); err != nil {
		return fmt.Errorf("downloading %q: %w", address, err)
	}
	for _, a := range r.Assets {
		want, told := strings.CutPrefix(a.Digest, "sha256:")
		if a.URL == address && told && !strings.EqualFold(want, hex.EncodeToString(sum.Sum(nil))) {
			return fmt.Errorf("%w: %q is not the file that GitHub has the hash of", errDamaged, a.Name)
		}
	}
	return f.Close()
}
