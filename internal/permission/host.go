package permission

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// schemePort returns the port of a scheme. An entry with any other scheme must include a port.
func schemePort(scheme string) int {
	switch scheme {
	case "https", "wss":
		return 443
	case "http", "ws":
		return 80
	}
	return 0
}

// ParseHost reads an entry of allowedHosts (SPEC E-2): host (ports 443 and 80), scheme://host[:port], or *.domain.
// Errors say what is wrong with the entry.
func ParseHost(text string) (Host, error) {
	h := Host{Text: text, Ports: []int{443, 80}}
	if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) { // lower case makes some ASCII
		return Host{}, errors.New("a host name is written in ASCII, others in their xn-- form, so that look-alikes are seen")
	}
	rest := strings.ToLower(text)
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		if scheme == "" || strings.IndexFunc(scheme, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0 {
			return Host{}, errors.New("the scheme before :// may have letters only")
		}
		h.Scheme, rest = scheme, after
		port := schemePort(scheme)
		var err error
		if rest, port, err = cutPort(rest, port); err != nil {
			return Host{}, err
		}
		h.Ports = []int{port}
	}
	if strings.ContainsAny(rest, "/?#@%\\ \t\n") {
		return Host{}, errors.New("an allowed host is a host, without path, user, query or blanks")
	}
	if strings.HasPrefix(rest, "*.") {
		h.Wildcard, rest = true, rest[2:]
	}
	h.Name = strings.TrimSuffix(rest, ".")
	return h, checkHostName(h)
}

// cutPort splits host:port; without a port it returns the scheme's.
func cutPort(rest string, port int) (string, int, error) {
	host, text, ok := rest, "", false
	if i := strings.LastIndexByte(rest, ':'); i >= 0 && !strings.HasSuffix(rest, "]") {
		host, text, ok = rest[:i], rest[i+1:], true
	}
	if !ok {
		if port == 0 {
			return "", 0, errors.New("this scheme has no port of its own, so the entry must name one")
		}
		return rest, port, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '+' {
		return "", 0, errors.New("the port must be a number from 1 to 65535")
	}
	return host, int(n), nil
}

func checkHostName(h Host) error {
	name := h.Name
	if inner, ok := strings.CutPrefix(name, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(name, "]") || h.Wildcard {
			return errors.New("this is not an IPv6 address in brackets")
		}
		return nil
	}
	switch {
	case name == "" || name == "*":
		return errors.New("an allowed host needs a name; there is no way to allow every host")
	case strings.Contains(name, "*"):
		return errors.New("a * can stand only for the first part of a name, as in *.example.com")
	case bareIPv6(name):
		return errors.New("an IPv6 address stands in brackets, as in [::1] or http://[::1]:8080")
	case strings.Contains(name, ":"):
		return errors.New("a port needs its scheme before the host, as in https://example.com:8443")
	case len(name) > 253:
		return errors.New("a host name has at most 253 characters")
	}
	labels := strings.Split(name, ".")
	for _, l := range labels {
		if err := checkLabel(l); err != nil {
			return err
		}
	}
	last := labels[len(labels)-1]
	if last[0] >= '0' && last[0] <= '9' {
		// Some programs take 127.1, 0x7f.1 and 2130706433 for addresses, others for names.
		if addr, err := netip.ParseAddr(name); err != nil || addr.String() != name || h.Wildcard {
			return errors.New("this is not an IPv4 address in its usual form")
		}
	}
	if h.Wildcard && len(labels) < 2 {
		return errors.New("a wildcard this wide would allow a whole top-level domain")
	}
	return nil
}

func checkLabel(l string) error {
	if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' {
		return errors.New("the parts of a host name have 1 to 63 characters and no dash at either end")
	}
	for _, r := range l {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return errors.New("a host name may have only letters, digits, dashes and dots")
		}
	}
	return nil
}

// bareIPv6 reports whether a name is an IPv6 address without brackets.
func bareIPv6(name string) bool {
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Is6()
}

// HostFix advises an author what to write instead of an entry that ParseHost refused.
func HostFix(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		rest, scheme = text, "https"
	}
	if i := strings.IndexAny(rest, "/?#"); i > 0 {
		rest = rest[:i]
	}
	if address, _, _ := strings.Cut(rest, "%"); bareIPv6(address) {
		if h, err := ParseHost("[" + address + "]"); err == nil && !ok {
			return "write " + strconv.Quote(h.Text) + ", or with a scheme and port " + strconv.Quote("http://"+h.Text+":8080")
		}
		return "write the address in brackets, and the port behind them, as in " + strconv.Quote(scheme+"://[::1]:8080")
	}
	guess := scheme + "://" + rest
	if h, err := ParseHost(guess); err == nil && guess != text {
		return "write " + strconv.Quote(h.Text)
	}
	return "write host, scheme://host[:port] or *.domain"
}

// String returns the entry for people, with its ports if they are unusual.
func (h Host) String() string {
	s := h.Name
	if h.Wildcard {
		s = "every host below " + s
	}
	var more []string
	switch {
	case h.Scheme == "":
	case len(h.Ports) == 1 && h.Ports[0] == schemePort(h.Scheme):
		more = append(more, h.Scheme+" only")
	default:
		more = append(more, h.Scheme, "port "+strconv.Itoa(h.Ports[0]))
	}
	if h.Local() {
		more = append(more, "your own machine or network")
	}
	if len(more) > 0 {
		s += " (" + strings.Join(more, ", ") + ")"
	}
	return s
}

// Local reports whether the entry names this machine or an address that the internet cannot reach.
func (h Host) Local() bool {
	if h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost") || strings.HasSuffix(h.Name, ".local") || strings.HasSuffix(h.Name, ".internal") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(h.Name, "[]"))
	addr = addr.Unmap()
	return err == nil && (addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified() || addr.IsMulticast())
}

// covers reports whether h allows everything that other allows.
func (h Host) covers(other Host) bool {
	if h.Scheme != "" && h.Scheme != other.Scheme {
		return false
	}
	for _, p := range other.Ports {
		if !slices.Contains(h.Ports, p) {
			return false
		}
	}
	if !h.Wildcard {
		return !other.Wildcard && h.Name == other.Name
	}
	// *.a.b covers x.a.b, *.x.a.b and itself, but not a.b.
	return strings.HasSuffix(other.Name, "."+h.Name) || other.Wildcard && other.Name == h.Name
}
