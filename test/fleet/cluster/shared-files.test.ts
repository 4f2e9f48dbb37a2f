/** The BMCs of machines as a row: only who leads writes it, and what it acknowledged is there. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openNotes } from '../../../runtime/fleet/cluster/cluster-notes.ts'
import { openSession } from '../../../runtime/fleet/cluster/postgres.ts'
import { createSharedFiles } from '../../../runtime/fleet/cluster/shared-files.ts'
import { openFreshMember } from '../../support/cluster/members.ts'
import { startPostgres } from '../../support/cluster/postgres.ts'
import { faultOf } from '../../support/server/state.ts'

const test = suite('files that servers share, as rows')
const postgres = await startPostgres()
test.after(() => postgres[Symbol.asyncDispose]())

const KEY = 'a key of at least thirty-two characters'

/** A server's BMCs, as far as the database goes. */
async function createBook(folder: string, name: string) {
  const path = join(folder, `${name}.json`)
  const notes = await openNotes(join(folder, `${name}-notes.json`))
  const log = { info: () => undefined }
  const files = createSharedFiles({ paths: { power: path }, key: KEY, notes, log })
  return {
    exchange: files.exchange,
    read: () => readFile(path, 'utf8'),
    write: (text: string) => writeFile(path, text),
  }
}

test('a leader that was replaced writes no BMCs, and what the next one acknowledges is there', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-shared-'))
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using member = await openFreshMember(url)
  const { cluster, epoch } = member.leader.lease
  await using session = await openSession(url)
  const [former, next, last] = await Promise.all(
    ['former', 'next', 'last'].map((each) => createBook(folder.path, each)),
  )
  if (former === undefined || next === undefined || last === undefined) throw new Error('no books')
  await former.write('one')
  await former.exchange(session, cluster, { role: 'leads', epoch })

  await postgres.query(name, 'UPDATE flasher.lease SET epoch = epoch + 1')
  await next.exchange(session, cluster, { role: 'begins-to-lead', epoch: epoch + 1 })
  assert.is(await next.read(), 'one')
  await former.write('late')
  const refused = await faultOf(former.exchange(session, cluster, { role: 'leads', epoch }))
  assert.is(refused.code, 'no-leader')

  await next.write('two')
  await next.exchange(session, cluster, { role: 'leads', epoch: epoch + 1 })
  // A row that somebody changed by hand keeps nothing from being stored.
  await postgres.query(name, `UPDATE flasher.secret SET version = 'another'`)
  await next.write('three')
  await next.exchange(session, cluster, { role: 'leads', epoch: epoch + 1 })
  await last.exchange(session, cluster, { role: 'begins-to-lead', epoch: epoch + 1 })
  assert.is(await last.read(), 'three')
})

test.run()
