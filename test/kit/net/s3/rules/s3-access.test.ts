import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { accessOf, chooseAccess, objectUrl, parseS3Source } from '#kit/net/s3/rules/s3-access.ts'

const test = suite('s3 access')
const NOTHING = { endpoint: '', region: '', access_key: '', secret_key: '' }

test('the variables of AWS say where and with what, and settings come before them', () => {
  assert.equal(accessOf({}), { endpoint: '', region: 'us-east-1', keys: null })
  const env = {
    AWS_ENDPOINT_URL: 'http://h:9000/',
    AWS_DEFAULT_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'a',
    AWS_SECRET_ACCESS_KEY: 'b',
    AWS_SESSION_TOKEN: 'c',
  }
  const keys = { accessKey: 'a', secretKey: 'b', sessionToken: 'c' }
  assert.equal(accessOf(env), { endpoint: 'http://h:9000', region: 'eu-west-1', keys })
  assert.equal(chooseAccess(NOTHING, env), accessOf(env))
  // A session token of the environment belongs to the keys of the environment.
  assert.equal(chooseAccess({ ...NOTHING, access_key: 'x', secret_key: 'y' }, env).keys, {
    accessKey: 'x',
    secretKey: 'y',
    sessionToken: null,
  })
})

test('an object is below its bucket, in the address of its region where no service is named', () => {
  const object = parseS3Source("s3://lab/a b/+(1)'?#.img")
  assert.equal(object, { bucket: 'lab', key: "a b/+(1)'?#.img" })
  const path = '/lab/a%20b/%2B%281%29%27%3F%23.img'
  const access = accessOf({ AWS_REGION: 'eu-west-1' })
  assert.is(objectUrl(access, object), `https://s3.eu-west-1.amazonaws.com${path}`)
  assert.is(objectUrl({ ...access, endpoint: 'http://h:1' }, object), `http://h:1${path}`)
})

test.run()
