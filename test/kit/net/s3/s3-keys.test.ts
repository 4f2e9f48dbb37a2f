import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readS3Access } from '#kit/net/s3/s3-client.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'

const test = suite('s3 keys')
const SETTINGS = {
  endpoint: 'http://h:1',
  region: '',
  access_key: 'a',
  secret_key: '',
  secret_key_file: '',
}

test('the secret key is in a setting or in the first line of a file, and is missed by name', async () => {
  await using folder = await makeFolder()
  const path = join(folder.path, 'key')
  await writeFile(path, ' the/secret+key= \nmore\n')
  const set = await readS3Access({ ...SETTINGS, secret_key: 's' }, {})
  assert.is(set.keys?.secretKey, 's')
  const kept = await readS3Access({ ...SETTINGS, secret_key_file: path }, {})
  assert.is(kept.keys?.secretKey, 'the/secret+key=')
  const missing = await faultOf(() =>
    readS3Access({ ...SETTINGS, secret_key_file: `${path}-not` }, {}),
  )
  assert.equal([missing.code, /s3\.secret_key_file/.test(missing.message)], ['input-missing', true])
  const lacking = await faultOf(() => readS3Access(SETTINGS, {}))
  assert.match(`${lacking.message} ${lacking.hint}`, /s3\.access_key has no secret key.*s3\.secret/)
  assert.is((await readS3Access({ ...SETTINGS, access_key: '' }, {})).keys, null)
})

test.run()
