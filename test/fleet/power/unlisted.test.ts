/** What was stored before labels had lists of addresses: it is read, and sent nowhere. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPowerBook } from '../../../runtime/fleet/power/power-store.ts'
import { macOf } from '../../support/power/acting.ts'
import { makeFolder } from '../../support/server/image-cache.ts'

const test = suite('passwords of labels without addresses')
const MAC = macOf('52:54:00:00:00:01')

test('the file of a release before is read', async () => {
  await using folder = await makeFolder()
  const path = join(folder.path, 'power.json')
  const secret = { user: 'admin', password: 's3cret' }
  const content = { version: 1, machines: {}, labels: { rack: secret }, all: null }
  await writeFile(path, JSON.stringify(content))
  const book = await openPowerBook(path)
  assert.equal(book.listUsers(), { all: null, labels: { rack: 'admin' }, addresses: { rack: [] } })
  const bmc = { way: 'ipmi', address: '10.20.0.11', firmware: 'uefi', outlet: null } as const
  await book.save(new Map([[MAC, { bmc, credential: undefined }]]))
  const found = book.findCredential(MAC, ['rack'])
  assert.equal(found, { credential: secret, from: 'label', label: 'rack', addresses: [] })
})

test.run()
