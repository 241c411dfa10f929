package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// main waits for bill before it gives the lease away, which ReleaseOnCancel asks for.
func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	signals, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	electing, release := context.WithCancel(context.Background())
	health := leaderelection.NewLeaderHealthzAdaptor(20 * time.Second)
	http.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) {
		if err := health.Check(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	http.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if signals.Err() != nil {
			http.Error(w, "stopping", http.StatusServiceUnavailable)
		}
	})
	go func() { log.Fatal(http.ListenAndServe(":8080", nil)) }()
	var leading sync.WaitGroup
	context.AfterFunc(signals, func() {
		leading.Wait()
		release()
	})
	leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "billing", Namespace: os.Getenv("POD_NAMESPACE")},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: os.Getenv("POD_NAME")},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		WatchDog:        health,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(term context.Context) {
				leading.Add(1)
				defer leading.Done()
				ctx, cancel := context.WithCancel(term)
				defer cancel()
				defer context.AfterFunc(signals, cancel)()
				bill(ctx)
			},
			OnStoppedLeading: func() { // others may lead, and bill may still run: end the process
				if signals.Err() == nil {
					log.Fatal("the lease is lost")
				}
			},
		},
	})
}

func bill(ctx context.Context) {
	log.Print("billing")
	for {
		select {
		case <-time.After(time.Minute):
			log.Print("the bills of a minute")
		case <-ctx.Done():
			return
		}
	}
}
