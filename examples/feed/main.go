// Command feed follows what all teams of a tenant do, live. Nothing of it is
// stored: what must not be missed is read with rollcall log.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/nats-io/nats.go"
)

func main() {
	nc, err := nats.Connect(os.Getenv("NATS_URL"), nats.UserCredentials(os.Getenv("NATS_CREDS")), nats.RootCAs(os.Getenv("NATS_CA")))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	lines := make(chan *nats.Msg, 1024)
	if _, err := nc.ChanSubscribe("rollcall.feed.main.*", lines); err != nil {
		log.Fatal(err)
	}
	for m := range lines {
		fmt.Println(string(m.Data)) // {"type":"event","event":"MessageDelivered",…} or {"type":"text",…}
	}
}
