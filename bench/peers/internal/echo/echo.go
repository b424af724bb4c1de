// Package echo is the unary gRPC method that grpcunary serves and grpcload calls. The message is
// the well-known BytesValue, so no generated code is needed.
package echo

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Method is the full name of the method.
const Method = "/bench.Echo/Call"

// Service answers every call with the same message.
type Service struct{ Reply *wrapperspb.BytesValue }

type caller interface {
	call(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error)
}

func (s *Service) call(context.Context, *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) {
	return s.Reply, nil
}

func handle(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	if intercept == nil {
		return srv.(caller).call(ctx, in)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: Method}
	return intercept(ctx, in, info, func(ctx context.Context, req any) (any, error) {
		return srv.(caller).call(ctx, req.(*wrapperspb.BytesValue))
	})
}

// Register adds s to a server.
func Register(r grpc.ServiceRegistrar, s *Service) {
	r.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bench.Echo",
		HandlerType: (*caller)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Call", Handler: handle}},
	}, s)
}
