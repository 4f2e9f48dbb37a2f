/** Secrets as rows: what was acknowledged is there, and who loses to a change made elsewhere is refused. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPasswords, hashPassword } from '#fleet/access/passwords.ts'
import { openNotes } from '#fleet/cluster/cluster-notes.ts'
import { openSession } from '#fleet/cluster/postgres.ts'
import type { SharedFileName } from '#fleet/cluster/rules/lease.ts'
import { createSharedFiles } from '#fleet/cluster/shared-files.ts'
import { openPowerBook } from '#fleet/power/power-service.ts'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { faultOf } from '#test/support/server/state.ts'

const test = suite('files that servers share, as rows')
const postgres = lendDatabases(test)

const doNothing = () => Promise.resolve()
const KEY = 'a key of at least thirty-two characters'

/** One file of a server, as far as the database goes; its BMCs unless another one is named. */
async function createBook(folder: string, name: string, file: SharedFileName = 'power') {
  const path = join(folder, `${name}.json`)
  const notes = await openNotes(join(folder, `${name}-notes.json`))
  const said: string[] = []
  const log = { info: () => undefined, warn: (text: string) => void said.push(text) }
  const files = createSharedFiles({ paths: { [file]: path }, key: KEY, notes, log })
  return {
    path,
    said,
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

test('a password that loses to one that another server stored is refused with a sentence', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-shared-'))
  const url = postgres.urlOf(await postgres.create())
  await using member = await openFreshMember(url)
  const { cluster, epoch } = member.leader.lease
  await using session = await openSession(url)
  const own = await createBook(folder.path, 'own', 'admin-password')
  const other = await createBook(folder.path, 'other', 'admin-password')
  const leads = { role: 'leads', epoch } as const
  const standsBy = { role: 'stands-by', epoch: null } as const
  let meanwhile = doNothing
  const passwords = createPasswords({
    path: own.path,
    configured: () => ({ password: '', password_hash: '' }),
    share: async () => {
      await meanwhile()
      await own.exchange(session, cluster, leads)
    },
  })
  await passwords.set('the first password')
  await other.exchange(session, cluster, standsBy)
  assert.is(await other.read(), await own.read())

  meanwhile = async () => {
    await other.write(`${await hashPassword('of the other one')}\n`)
    await other.exchange(session, cluster, standsBy)
  }
  const refused = await faultOf(passwords.set('of this one'))
  assert.is(refused.code, 'conflict')
  assert.match(refused.message, 'was changed on another server at the same time')
  assert.ok(await passwords.check('of the other one'))
  assert.match(own.said.join(), 'admin-password was changed here and on another server')

  // What was taken before our turn came is no less lost.
  meanwhile = async () => {
    await other.write(`${await hashPassword('one more')}\n`)
    await other.exchange(session, cluster, standsBy)
    await own.exchange(session, cluster, leads)
  }
  assert.is((await faultOf(passwords.set('of this one'))).code, 'conflict')
  meanwhile = doNothing
  await passwords.set('of this one')
  await other.exchange(session, cluster, standsBy)
  assert.is(await other.read(), await own.read())
})

test('a change of BMCs that loses to another leader is refused with a sentence', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-shared-'))
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using member = await openFreshMember(url)
  const { cluster, epoch } = member.leader.lease
  await using session = await openSession(url)
  const former = await createBook(folder.path, 'former')
  const next = await createBook(folder.path, 'next')
  const book = await openPowerBook(former.path, () =>
    former.exchange(session, cluster, { role: 'leads', epoch }),
  )
  await book.saveForAll({ user: 'root', password: 'calvin' })
  await postgres.query(name, 'UPDATE flasher.lease SET epoch = epoch + 1')
  await next.exchange(session, cluster, { role: 'begins-to-lead', epoch: epoch + 1 })
  const refused = await faultOf(book.saveForAll({ user: 'root', password: 'late' }))
  assert.match(refused.message, 'another server leads now, so power was not stored')
  assert.match(refused.hint ?? '', 'try again')
  await next.exchange(session, cluster, { role: 'leads', epoch: epoch + 1 })
  assert.match(await next.read(), 'calvin')
})

test.run()
