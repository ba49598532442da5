// Kfake serves the Kafka protocol on one loopback port, from memory, for tests and for trying the production profile on a
// laptop: github.com/twmb/franz-go/pkg/kfake with the topics given. It keeps nothing on disk and is no broker for real work.
//
//	kfake -port 9092 -partitions 6 -topics agent.tasks.incoming,agent.tools.execute
//
// It prints its address when it listens, and ends when its standard input does: no copy outlives whoever started it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	port := flag.Int("port", 9092, "port on 127.0.0.1")
	partitions := flag.Int("partitions", 6, "partitions of each topic")
	topics := flag.String("topics", "", "topics to create, separated by commas; others are made on first use")
	flag.Parse()

	cluster, err := kfake.NewCluster(
		kfake.Ports(*port),
		kfake.NumBrokers(1),
		kfake.AllowAutoTopicCreation(),
		kfake.DefaultNumPartitions(*partitions),
		kfake.SeedTopics(int32(*partitions), namesIn(*topics)...),
		kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608"}),
		kfake.WithLogger(kfake.BasicLogger(os.Stderr, kfake.LogLevelWarn)),
	)
	if err != nil {
		fmt.Fprintf(os.Stderr, "kfake: cannot listen on 127.0.0.1:%d: %v\n", *port, err)
		os.Exit(1)
	}
	defer cluster.Close()
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func namesIn(list string) []string {
	var names []string
	for _, name := range strings.Split(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
