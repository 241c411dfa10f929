module github.com/lockstep-go/lockstep/redislock

go 1.26.0

require (
	github.com/alicebob/miniredis/v2 v2.40.0
	github.com/lockstep-go/lockstep v1.0.0
	github.com/redis/go-redis/v9 v9.23.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
)
