package eventstore

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Error codes of the JetStream API.
const (
	codeNoMessage       = 10037
	codeTooLarge        = 10054
	codeWrongLastSeq    = 10071
	codeWrongLastSeqR3  = 10164
	codeInflightMsgID   = 10158
	codeNoStream        = 10059
	codeNoConsumer      = 10014
	codeConsumerOverlap = 10100
	codeConsumerExists  = 10148
	codeConsumerInUse   = 10105
	// codeConsumerFailed is for what has no code of its own: one that was closed
	// while it was made, because another took its place.
	codeConsumerFailed = 10012

	// Why a stream is not made.
	codeNoPeers           = 10005
	codeNotAvailable      = 10008
	codeNoLeader          = 10009
	codeOverlap           = 10065
	codeReplicasAlone     = 10074
	codeNotForAccount     = 10039
	codeNotEnabled        = 10076
	codeMaxStreams        = 10027
	codeResources         = 10002
	codeNoResources       = 10023
	codeStorage           = 10047
	codeMaxStreamBytes    = 10122
	codeNoTier            = 10120
	codeConsumersOfStream = 10026
)

func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return false
	}
	for _, c := range codes {
		if api.ErrorCode == c {
			return true
		}
	}
	return false
}

// passing reports an error that may be gone the next time: nobody answered, or
// the server says that it cannot right now.
func passing(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		return api.Code == 503
	}
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders)
}
