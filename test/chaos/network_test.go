package chaos_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// network is all wires between the processes of a test. Each goes through a
// cutter of its own: a listener that passes bytes on, one way and the other,
// while that way is open.
type network struct {
	t  testing.TB
	wg sync.WaitGroup

	mu      sync.Mutex
	cuts    map[way]bool
	changed chan struct{} // closed at each change
	closed  bool
	inside  map[*passage]bool
	doors   []net.Listener
}

// way is a direction in which bytes go, between two processes by name.
type way struct{ from, to string }

// passage is one connection that goes through.
type passage struct {
	from, to string
	in, out  net.Conn
	over     chan struct{}
	once     sync.Once
}

// end closes both ends at once, as a reset does.
func (p *passage) end() {
	p.once.Do(func() {
		close(p.over)
		_ = p.in.Close()
		if p.out != nil {
			_ = p.out.Close()
		}
	})
}

func newNetwork(t testing.TB) *network {
	n := &network{t: t, cuts: map[way]bool{}, changed: make(chan struct{}), inside: map[*passage]bool{}}
	t.Cleanup(n.close)
	return n
}

func (n *network) close() {
	n.mu.Lock()
	n.closed = true
	n.change()
	for _, d := range n.doors {
		_ = d.Close()
	}
	for p := range n.inside {
		p.end()
	}
	n.mu.Unlock()
	n.wg.Wait()
}

func (n *network) change() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// wire lays a wire and gives the address of its near end. Where it goes to is
// asked with every connection: a process that was killed comes back at another
// port, or not at all, and then target is empty.
func (n *network) wire(from, to string, target func() string) string {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	n.doors = append(n.doors, l)
	n.mu.Unlock()
	n.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // the network is closed
			}
			p := &passage{from: from, to: to, in: in, over: make(chan struct{})}
			if !n.enter(p) {
				_ = in.Close()
				return
			}
			n.wg.Go(func() { n.through(p, target) })
		}
	})
	return l.Addr().String()
}

func (n *network) enter(p *passage) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.inside[p] = true
	return true
}

func (n *network) through(p *passage, target func() string) {
	defer func() {
		p.end()
		n.mu.Lock()
		delete(n.inside, p)
		n.mu.Unlock()
	}()
	// No connection is made while either way is cut: the first word would not
	// arrive, or not its answer.
	if !n.await(p, way{p.from, p.to}) || !n.await(p, way{p.to, p.from}) {
		return
	}
	addr := target()
	if addr == "" {
		return
	}
	out, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	n.mu.Lock()
	select {
	case <-p.over:
		_ = out.Close()
	default:
		p.out = out
	}
	n.mu.Unlock()
	if p.out == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.pump(p, way{p.from, p.to}, p.out, p.in)
	}()
	n.pump(p, way{p.to, p.from}, p.in, p.out)
	<-done
}

// pump passes bytes on in one direction. While it is cut they are held back, as
// TCP holds them; also that a side has hung up is not heard on the other.
func (n *network) pump(p *passage, w way, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		k, err := from.Read(buf)
		if !n.await(p, w) {
			return
		}
		if k > 0 {
			if _, werr := to.Write(buf[:k]); werr != nil {
				err = werr
			}
		}
		if err != nil {
			p.end()
			return
		}
	}
}

// await waits until a way is open; false when the connection is over.
func (n *network) await(p *passage, w way) bool {
	for {
		n.mu.Lock()
		cut, changed, closed := n.cuts[w], n.changed, n.closed
		n.mu.Unlock()
		if closed {
			return false
		}
		select {
		case <-p.over:
			return false
		default:
		}
		if !cut {
			return true
		}
		select {
		case <-changed:
		case <-p.over:
			return false
		}
	}
}

// cut stops the bytes that go one way.
func (n *network) cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[way{from, to}] = true
	n.change()
}

// mend opens every way from and to one again. With reset, connections that were
// held up are broken off and what was under way in them is lost for ever;
// without, it arrives, late.
func (n *network) mend(one string, reset bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ours := func(w way) bool { return w.from == one || w.to == one }
	if reset {
		for p := range n.inside {
			there, back := way{p.from, p.to}, way{p.to, p.from}
			if ours(there) && (n.cuts[there] || n.cuts[back]) {
				p.end()
			}
		}
	}
	for w := range n.cuts {
		if ours(w) {
			delete(n.cuts, w)
		}
	}
	n.change()
}
