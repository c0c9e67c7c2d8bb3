// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Identity says what of a backend is hashed, and so the form of Backend.ID.
type Identity uint8

const (
	// IdentityAddress hashes the socket address as pingora-ketama prints it. The ID is an IP address and a port in
	// canonical form: "10.0.0.1:8080", "[2001:db8::1]:8080".
	IdentityAddress Identity = 1
	// IdentityNGINX hashes what follows "server" in an NGINX upstream block. The ID is that text: "cache-1.example:8080",
	// "10.0.0.1", "[::1]:80". The spelling counts, and no port is not the same as port 80.
	IdentityNGINX Identity = 2
	// IdentityName hashes a name, so that a backend keeps its keys when its address changes. The ID is the name: 1 to
	// MaxNameBytes of printable ASCII.
	IdentityName Identity = 3
)

// String returns "Address", "NGINX" or "Name".
func (i Identity) String() string {
	switch i {
	case IdentityAddress:
		return "Address"
	case IdentityNGINX:
		return "NGINX"
	case IdentityName:
		return "Name"
	default:
		return fmt.Sprintf("Identity(%d)", uint8(i))
	}
}

// id is a parsed identity.
type id struct {
	text string
	// addr orders identities that are addresses; it is zero where the host is a name.
	addr netip.Addr
	port uint16
	host string
}

// parse returns the identity, or why text is none.
func (i Identity) parse(text string) (id, string) {
	switch i {
	case IdentityAddress:
		return parseAddress(text)
	case IdentityNGINX:
		return parseNGINX(text)
	case IdentityName:
		return id{text: text, host: text}, checkName(text)
	default:
		return id{}, "the identity is not one of Address, NGINX, Name"
	}
}

func parseAddress(text string) (id, string) {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return id{}, "not an IP address and a port, such as 10.0.0.1:8080 or [2001:db8::1]:8080"
	}
	if ap.Addr().Zone() != "" {
		return id{}, "an address with a zone means something else on every host"
	}
	if ap.Port() == 0 {
		return id{}, "the port is not within 1 to 65535"
	}
	if ap.String() != text {
		return id{}, fmt.Sprintf("not in canonical form, which is %q", ap)
	}
	return id{text: text, addr: ap.Addr(), port: ap.Port(), host: ap.Addr().String()}, ""
}

// parseNGINX splits the text as ngx_http_upstream_init_chash does: digits behind the last colon are the port.
func parseNGINX(text string) (id, string) {
	host, port := text, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 && strings.Trim(text[at+1:], "0123456789") == "" {
		host, port = text[:at], text[at+1:]
	}
	result := id{text: text, host: host}
	if len(host) != len(text) {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return id{}, fmt.Sprintf("the port %.10q is not a number within 1 to 65535 without leading zeros", port)
		}
		result.port = uint16(n)
	}
	if reason := checkName(host); reason != "" {
		return id{}, "the host " + reason
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		addr, err := netip.ParseAddr(strings.TrimSuffix(inner, "]"))
		if err != nil || !addr.Is6() || addr.Zone() != "" || !strings.HasSuffix(inner, "]") {
			return id{}, "the brackets do not hold an IPv6 address"
		}
		result.addr = addr
		return result, ""
	}
	// NGINX takes "unix:" in any case for the path of a socket, and the other bytes are syntax of its configuration.
	if strings.ContainsAny(host, ":[]/;{}\"'$#?\\") || len(host) != len(text) && strings.EqualFold(host, "unix") {
		return id{}, "not a host and an optional port as in an NGINX upstream; IPv6 needs brackets"
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		result.addr = addr
	}
	return result, ""
}

// compare is the order of the backends in a ring, and so of tied points: IPv4, IPv6, names; then by bytes, then by port.
func (a id) compare(b id) int {
	if a.addr.IsValid() != b.addr.IsValid() {
		if a.addr.IsValid() {
			return -1
		}
		return 1
	}
	if !a.addr.IsValid() {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.port, b.port))
	}
	return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(a.port, b.port), cmp.Compare(a.text, b.text))
}

// hashInput appends to dst the bytes whose CRC-32 starts the backend's chain of points.
func (i Identity) hashInput(dst []byte, a id) []byte {
	dst = append(dst, a.host...)
	if i == IdentityName {
		return dst
	}
	dst = append(dst, 0)
	if a.port == 0 {
		return dst
	}
	return strconv.AppendUint(dst, uint64(a.port), 10)
}
