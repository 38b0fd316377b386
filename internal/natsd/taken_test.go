package natsd_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/rollcall-dev/rollcall/domain"
	"github.com/rollcall-dev/rollcall/internal/natsd"
)

// A port that somebody has, of clients or of the cluster, is named.
func TestAddressInUseIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	port := l.Addr().(*net.TCPAddr).Port
	for name, cfg := range map[string]natsd.Config{
		"clients": {Port: port, Token: "t"},
		"cluster": {Port: -1, Token: "t", Name: "a", Cluster: &natsd.Cluster{Name: "c", Port: port, Routes: []string{"127.0.0.1:9"}}},
	} {
		cfg.Dir = t.TempDir()
		s, err := natsd.Start(cfg)
		if err == nil {
			s.Shutdown()
		}
		r, ok := errors.AsType[*domain.Refusal](err)
		if !ok || r.Code != "address-in-use" || !strings.Contains(r.What, l.Addr().String()) || r.Why == "" || r.Try == "" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
