// Writes records with one SASL mechanism and reads them back, by franz-go.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func mechanism(name, user, secret string) sasl.Mechanism {
	switch name {
	case "PLAIN":
		return plain.Auth{User: user, Pass: secret}.AsMechanism()
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()
	default:
		return oauth.Auth{Token: secret}.AsMechanism()
	}
}

// Arguments: address, mechanism, user, password or token, topic, seconds between the records.
func main() {
	pause, err := strconv.ParseFloat(os.Args[6], 64)
	check(err)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(os.Args[1]),
		kgo.SASL(mechanism(os.Args[2], os.Args[3], os.Args[4])),
		kgo.ConsumeTopics(os.Args[5]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AllowAutoTopicCreation(),
	)
	check(err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for number := range 3 {
		record := &kgo.Record{Topic: os.Args[5], Value: []byte(strconv.Itoa(number))}
		check(client.ProduceSync(ctx, record).FirstErr())
		time.Sleep(time.Duration(pause * float64(time.Second)))
	}
	for read := 0; read < 3; {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			read++
		})
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
