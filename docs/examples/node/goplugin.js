// What go-plugin asks of a plugin in any language: the handshake line on standard output, mutual TLS with certificates made
// on the spot, and three small services. Nothing here knows what the plugin does.
'use strict';
const crypto = require('node:crypto'), fs = require('node:fs'), os = require('node:os'), path = require('node:path');
const grpc = require('@grpc/grpc-js'), loader = require('@grpc/proto-loader');

// ---- Errors: a gRPC status with one ErrorDetail in the details of google.rpc.Status, written by hand.
const varint = n => n < 128 ? [n] : [n & 127 | 128, ...varint(n >>> 7)];
const field = (n, b) => Buffer.from([n << 3 | 2, ...varint(Buffer.byteLength(b)), ...Buffer.from(b)]);
function fail(code, status = grpc.status.INVALID_ARGUMENT) {
  const detail = Buffer.concat([field(1, code), Buffer.from([2 << 3, 2])]); // outcome: not dispatched
  const any = Buffer.concat([field(1, 'type.googleapis.com/openphone.runtime.v1.ErrorDetail'), field(2, detail)]);
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Buffer.concat([Buffer.from([1 << 3, status]), field(2, code), field(3, any)]));
  return Object.assign(new Error(code), { code: status, details: code, metadata });
}

// ---- A self-signed certificate for localhost with a P-521 key, in DER, as the handshake wants it.
function certificate() {
  const tlv = (tag, ...parts) => { const b = Buffer.concat(parts.map(p => Buffer.from(p))), n = b.length; return Buffer.concat([Buffer.from(n < 128 ? [tag, n] : n < 256 ? [tag, 129, n] : [tag, 130, n >> 8, n & 255]), b]); };
  const seqOf = (...parts) => tlv(0x30, ...parts), utc = d => tlv(0x17, d.toISOString().replace(/[-:T]/g, '').slice(2, 14) + 'Z');
  const { privateKey, publicKey } = crypto.generateKeyPairSync('ec', { namedCurve: 'secp521r1' });
  const algorithm = seqOf(tlv(6, Buffer.from('2a8648ce3d040304', 'hex'))); // ecdsa-with-SHA512
  const name = seqOf(tlv(0x31, seqOf(tlv(6, [0x55, 4, 3]), tlv(0x0c, 'localhost'))));
  const alternative = seqOf(seqOf(tlv(6, [0x55, 0x1d, 0x11]), tlv(4, seqOf(tlv(0x82, 'localhost')))));
  const tbs = seqOf(tlv(0xa0, tlv(2, [2])), tlv(2, [1, ...crypto.randomBytes(8)]), algorithm, name,
    seqOf(utc(new Date(Date.now() - 60e3)), utc(new Date(Date.now() + 10 * 365 * 864e5))), name, publicKey.export({ type: 'spki', format: 'der' }), tlv(0xa3, alternative));
  const der = seqOf(tbs, algorithm, tlv(3, [0], crypto.sign('sha512', tbs, privateKey)));
  const pem = `-----BEGIN CERTIFICATE-----\n${der.toString('base64').match(/.{1,64}/g).join('\n')}\n-----END CERTIFICATE-----\n`;
  return { der, cert_chain: Buffer.from(pem), private_key: Buffer.from(privateKey.export({ type: 'sec1', format: 'pem' })) };
}

// serve announces the plugin to the host and returns; the process lives until the host is done with it.
function serve(runtimeService, conversationService) {
  if (process.env.OPENPHONE_PLUGIN !== '0b6f0f6e-openphone-runtime-v1') {
    console.error('This program is an OpenPhone plugin: it is started by openphone, not by hand.');
    process.exit(1);
  }
  const protos = process.env.OPENPHONE_PROTO || path.join(__dirname, '../../../proto');
  const v1 = grpc.loadPackageDefinition(loader.loadSync(['runtime', 'conversation'].map(n => `openphone/runtime/v1/${n}.proto`),
    { includeDirs: [protos], enums: String, longs: Number, defaults: true, arrays: true, objects: true, oneofs: true })).openphone.runtime.v1;
  const same = b => b, raw = (path, requestStream = false, responseStream = false) => ({ path, requestStream, responseStream, requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same });
  const server = new grpc.Server({ 'grpc.max_receive_message_length': 17 << 20, 'grpc.max_send_message_length': 17 << 20 });
  server.addService(v1.RuntimeService.service, runtimeService);
  server.addService(v1.ConversationService.service, conversationService);
  server.addService({ Check: raw('/grpc.health.v1.Health/Check') }, { Check: (_, done) => done(null, Buffer.from([8, 1])) });
  server.addService({ StartStream: raw('/plugin.GRPCBroker/StartStream', true, true) }, { StartStream: call => call.on('data', () => {}) });
  server.addService({ StreamStdio: raw('/plugin.GRPCStdio/StreamStdio', false, true) }, { StreamStdio: () => {} });
  server.addService({ Shutdown: raw('/plugin.GRPCController/Shutdown') }, { Shutdown: (_, done) => { done(null, Buffer.alloc(0)); setTimeout(leave, 20); } });

  const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR || os.tmpdir(), `plugin-${process.pid}`);
  const leave = () => { server.forceShutdown(); fs.rmSync(socket, { force: true }); process.exit(0); };
  process.on('SIGTERM', leave).on('SIGINT', () => {});
  if (process.env.OPENPHONE_PLUGIN_STDIN === '1') process.stdin.on('end', leave).resume(); // the host is gone
  const own = certificate();
  const tls = process.env.PLUGIN_CLIENT_CERT ? grpc.ServerCredentials.createSsl(Buffer.from(process.env.PLUGIN_CLIENT_CERT), [own], true) : grpc.ServerCredentials.createInsecure();
  server.bindAsync('unix:' + socket, tls, err => {
    if (err) throw err;
    process.stdout.write(`1|1|unix|${socket}|grpc|${own.der.toString('base64').replace(/=+$/, '')}\n`);
  });
}

module.exports = { serve, fail };
