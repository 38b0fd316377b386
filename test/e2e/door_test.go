package e2e_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// door stands before the model server and counts who comes: a connection is
// seen even if it asks nothing. While it is shut nobody answers there.
type door struct {
	t     *testing.T
	url   string
	addr  string
	host  string
	count atomic.Int64

	listener net.Listener
	open     sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	inside   map[net.Conn]bool
}

func openDoor(t *testing.T, target string) *door {
	t.Helper()
	host, path, _ := strings.Cut(strings.TrimPrefix(target, "http://"), "/")
	d := &door{t: t, addr: "127.0.0.1:0", host: host, inside: map[net.Conn]bool{}}
	d.listen()
	d.url = "http://" + d.addr + "/" + path
	t.Cleanup(d.shut)
	return d
}

// listen opens the door, again at the same address.
func (d *door) listen() {
	d.t.Helper()
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.listener, d.addr, d.closed = l, l.Addr().String(), false
	d.open.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			d.count.Add(1)
			if d.enter(in) {
				d.open.Go(func() { d.through(in) })
			}
		}
	})
}

func (d *door) enter(in net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = in.Close()
		return false
	}
	d.inside[in] = true
	return true
}

// shut closes the door and breaks off whatever goes through it.
func (d *door) shut() {
	_ = d.listener.Close()
	d.mu.Lock()
	d.closed = true
	for in := range d.inside {
		_ = in.Close()
	}
	d.mu.Unlock()
	d.open.Wait()
}

// through passes bytes both ways until either side ends.
func (d *door) through(in net.Conn) {
	defer func() {
		d.mu.Lock()
		delete(d.inside, in)
		d.mu.Unlock()
		_ = in.Close()
	}()
	out, err := net.Dial("tcp", d.host)
	if err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
	_ = in.Close()
	<-done
}
