import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { describeFailure, STALLED } from '#kit/net/rules/network-failure.ts'

const test = suite('network-failure')

const coded = (code: string, message = 'secret') => Object.assign(new Error(message), { code })

test('says network failures in words, and passes on no message of others', () => {
  assert.is(describeFailure(coded('ENOTFOUND'))?.reason, 'host name not found')
  assert.is(describeFailure(coded('EWHATEVER'))?.reason, 'network error EWHATEVER')
  assert.is(
    describeFailure(coded('HPE_INVALID_CONSTANT'))?.reason,
    'the server does not speak HTTP',
  )
  assert.is(describeFailure(coded(STALLED, 'no data for 3 s'))?.reason, 'no data for 3 s')
  assert.match(describeFailure(coded('SELF_SIGNED_CERT_IN_CHAIN'))?.hint ?? '', /FLASHER_CA_FILE/)
  assert.is(describeFailure(new TypeError('mistake')), null)
  assert.is(describeFailure(new Fault('source-broken', 'ours')), null)
})

test('names the proxy that was not reached', () => {
  const away = describeFailure(Object.assign(coded('ECONNREFUSED'), { proxy: '127.0.0.1:1' }))
  assert.is(away?.reason, 'the proxy 127.0.0.1:1 cannot be reached: connection refused')
  assert.match(away?.hint ?? '', /http_proxy.*no_proxy/)
  const cut = describeFailure(Object.assign(coded('ECONNRESET'), { proxy: '127.0.0.1:1' }))
  assert.is(cut?.reason, 'connection closed by the server', 'it was reached')
})

test.run()
