package auth

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/rollcall-dev/rollcall/domain"
)

// Server is one NATS server of the installation's own cluster.
type Server struct {
	Name string `json:"name"`
	// Host by which the others and the clients find it: a name or an address.
	Host       string `json:"host"`
	ClientPort int    `json:"client_port"`
	RoutePort  int    `json:"route_port"`
}

// Ports that are used when none are named.
const (
	clientPort = 4222
	routePort  = 6222
)

// ClientAddr is where clients find the server.
func (s Server) ClientAddr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.ClientPort)) }

// RouteAddr is where the other servers find it.
func (s Server) RouteAddr() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.RoutePort)) }

// ParseServer reads NAME=HOST[:CLIENTPORT[/ROUTEPORT]].
func ParseServer(text string) (Server, error) {
	bad := func(why string) (Server, error) {
		return Server{}, domain.Refuse("usage", "--server cannot be "+quoted(text), why, "give NAME=HOST, NAME=HOST:4222 or NAME=HOST:4222/6222")
	}
	name, at, ok := strings.Cut(text, "=")
	if !ok {
		return bad("it has no =")
	}
	s := Server{Name: name, Host: at, ClientPort: clientPort, RoutePort: routePort}
	rest, routes, ok := strings.Cut(at, "/")
	if ok {
		var err error
		if s.RoutePort, err = port(routes); err != nil {
			return bad(err.Error())
		}
	}
	s.Host = strings.Trim(rest, "[]")
	if net.ParseIP(s.Host) == nil && strings.Contains(rest, ":") {
		host, p, err := net.SplitHostPort(rest)
		if err != nil {
			return bad(err.Error())
		}
		s.Host = host
		if s.ClientPort, err = port(p); err != nil {
			return bad(err.Error())
		}
	}
	switch {
	case !domain.ValidToken(s.Name):
		return bad(tokenRule("a server's name"))
	case slices.Contains(reserved, s.Name):
		return bad("a folder of that name is there for something else")
	case !validHost(s.Host):
		return bad("the host is no name and no address")
	}
	return s, nil
}

func port(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s is no port", quoted(text))
	}
	return int(n), nil
}

// validHost reports whether a certificate can name the host.
func validHost(host string) bool {
	if net.ParseIP(host) != nil {
		return true
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return false
		}
	}
	return len(host) <= 253
}

// checkServers refuses servers that could be no cluster.
func checkServers(all []Server) error {
	if len(all) > 0 && len(all)%2 == 0 || len(all) > 5 {
		return domain.Refuse("usage", fmt.Sprintf("%d servers make no cluster", len(all)),
			"a majority decides: 2 servers stop when one does, and more than 5 only make each write slower", "give 1, 3 or 5 times --server; further nodes need none")
	}
	seen := map[string]string{}
	for _, s := range all {
		for _, key := range []string{"the name " + s.Name, "the address " + s.ClientAddr(), "the address " + s.RouteAddr()} {
			if other, twice := seen[key]; twice {
				return domain.Refuse("usage", "two servers cannot share "+key, "it is given to "+other+" and to "+s.Name, "give each its own, such as a=10.0.0.1 b=10.0.0.2, or other ports on one host")
			}
			seen[key] = s.Name
		}
	}
	return nil
}

func tokenRule(what string) string { return what + " is 1 to 64 of a-z, 0-9, '-' and '_'" }

// quoted shows what somebody typed, safe on a terminal and not too long.
func quoted(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}

// ParseAuditor reads NAME or NAME=TENANT. Whether it can be is checked where
// it is used.
func ParseAuditor(text string) Auditor {
	name, tenant, limited := strings.Cut(text, "=")
	if limited && tenant == "" {
		name = text // which is no name
	}
	return Auditor{Name: name, Tenant: tenant}
}
