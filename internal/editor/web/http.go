package web

import (
	"bytes"
	"crypto/rand"
	"embed"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"sync"
	"time"
)

// assets is the built page: index.html, and files whose names carry a hash of
// their content. The sources are in web/; TestAssets says how to build them.
//
//go:embed assets
var assets embed.FS

// hashed is how the build names a file that never changes under its name.
var hashed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`-[A-Za-z0-9_]{8,}\.[a-z0-9]+$`) })

// nonceTag is the tag of index.html that hands the page its nonce for styles.
var nonceTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(<meta\s+name="csp-nonce"\s+content=")[^"]*(")`) })

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.serveIndex)
	mux.HandleFunc("GET /assets/{name...}", serveAsset)
	mux.HandleFunc("GET /ws", s.serveSocket)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), usb=()")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	})
}

// serveIndex sends the page with a fresh nonce, which its editor puts on the
// style sheets that it makes.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) {
	if origin := s.ownOrigin(); "http://"+r.Host != origin && origin != "" {
		// A page proves itself for one origin. The browser keeps the fragment.
		http.Redirect(w, r, origin+"/", http.StatusTemporaryRedirect)
		return
	}
	page, err := assets.ReadFile("assets/index.html")
	if err != nil {
		http.Error(w, "this build has no page", http.StatusNotFound)
		return
	}
	nonce := rand.Text()
	page = nonceTag().ReplaceAll(page, []byte("${1}"+nonce+"${2}"))
	h := w.Header()
	// 'self' does not cover ws: in every browser.
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"+nonce+"'; "+
		"connect-src 'self' ws://"+r.Host+"; img-src 'self' data:; font-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Content-Type", "text/html; charset=utf-8")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
}

func serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !fs.ValidPath(name) || name == "index.html" {
		http.NotFound(w, r)
		return
	}
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	if hashed().MatchString(name) {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// contentType does not ask the system's tables where it matters: they are
// known to call a script text/plain.
func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		if t := mime.TypeByExtension(ext); t != "" {
			return t
		}
		return "application/octet-stream"
	}
}
