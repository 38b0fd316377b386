package natsdtest

import (
	"testing"

	"go.uber.org/goleak"
)

// VerifyTestMain runs the tests of a package that starts servers and fails
// when a goroutine is left. A server that is stopped in the instant after its
// inbox was made lets one goroutine of its own time out; that one is not ours.
func VerifyTestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(
		"github.com/nats-io/nats-server/v2/server.(*stream).trySetupSourceConsumer.func3"))
}
