// Command message sends a message to a member of a team, as any NATS client can.
package main

import (
	"fmt"
	"log"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	conversation, member, text := os.Args[1], os.Args[2], os.Args[3]
	nc, err := nats.Connect(os.Getenv("NATS_URL"), nats.UserCredentials(os.Getenv("NATS_CREDS")), nats.RootCAs(os.Getenv("NATS_CA")))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	stored, err := nc.Request("rollcall.in.main."+conversation+"."+member, []byte(text), 5*time.Second)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(stored.Data)) // {"stream":"ROLLCALL_INBOX","seq":7}, or an "error"
}
