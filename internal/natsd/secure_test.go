package natsd_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// Off loopback a server listens only with TLS, and only to those it can tell
// from others.
func TestListeningIsRefusedWhereStrangersAre(t *testing.T) {
	tls := &natsd.TLS{CA: "ca.pem", Cert: "server.pem", Key: "server.key"}
	for name, cfg := range map[string]natsd.Config{
		"clients":               {Host: "0.0.0.0", Port: -1, Token: "x"},
		"clients by a name":     {Host: "example.com", Port: -1, Token: "x"},
		"clients, IPv6":         {Host: "::", Port: -1, Token: "x"},
		"servers":               {Port: -1, Token: "x", Cluster: &natsd.Cluster{Name: "c", Host: "10.0.0.1", Port: -1}},
		"with TLS, but anybody": {Host: "0.0.0.0", Port: -1, TLS: tls},
		"an account, no TLS":    {Host: "0.0.0.0", Port: -1, Operator: &natsd.Operator{}},
	} {
		cfg.Dir = filepath.Join(t.TempDir(), "data")
		s, err := natsd.Start(cfg)
		if r, ok := errors.AsType[*domain.Refusal](err); !ok || r.Code != "listening-open" || r.Why == "" || r.Try == "" {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			s.Shutdown()
		}
	}
	for _, host := range []string{"", "127.0.0.1", "localhost", "::1"} {
		s, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Name: "n", Host: host, Port: -1, Cluster: &natsd.Cluster{Name: "c", Host: host, Port: -1}})
		if r, ok := errors.AsType[*domain.Refusal](err); ok {
			t.Errorf("%q: %v", host, r)
		}
		if s != nil {
			s.Shutdown()
		}
	}
}
