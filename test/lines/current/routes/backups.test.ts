import { rm, writeFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { backupRoutes } from '../../../../runtime/lines/current/routes/backups.ts'
import { openBackupDesk, populate } from '../../../support/server/backups.ts'
import { asJson, createTestServer } from '../../../support/server/server.ts'
import { createStateFolder, macOf } from '../../../support/server/state.ts'

const test = suite('backup routes')
const ID = '2026-11-21T06-55-53Z'

const now = () => new Date('2026-11-21T06:55:53.000Z')

async function createDesk() {
  const folder = await createStateFolder()
  const desk = await openBackupDesk(folder, { now })
  const server = await createTestServer({
    line: { routes: (site) => backupRoutes(site, { backups: desk.backups, place: () => 'fs' }) },
  })
  await populate(desk)
  return {
    ...desk,
    server,
    ask: await server.operator(),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await desk[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('a backup is asked for, listed, downloaded, restored and removed', async () => {
  await using desk = await createDesk()
  const started = await desk.ask('/workers/backups', asJson({ trigger: 'manual' }))
  assert.is(started.status, 202)
  const job = await started.json()
  assert.equal([job.backup_id, job.trigger, job.dest_path], [ID, 'manual', ID])
  await desk.backups.awaitEnd(ID)
  const listing = await (await desk.ask('/workers/backups')).json()
  assert.is(listing.backups[0].status, 'completed')
  assert.equal(
    listing.stored.map((one: { backup_id: string; kind: string; machines: number }) => [
      one.backup_id,
      one.kind,
      one.machines,
    ]),
    [[ID, 'full', 3]],
  )
  assert.not(JSON.stringify(listing).includes('/tmp'))
  const download = await desk.ask(`/ui/backups/${ID}/download`)
  assert.is(download.headers.get('content-disposition'), `attachment; filename="${ID}.json"`)
  assert.is((await download.json()).bty_export_version, 3)
  const whole = await desk.ask(`/ui/backups/${ID}/download?file=state.db`)
  assert.is(
    Buffer.from(await whole.arrayBuffer())
      .subarray(0, 15)
      .toString(),
    'SQLite format 3',
  )
  await desk.machines.remove(macOf(1))
  const restored = await desk.ask(`/workers/backups/${ID}/restore`, { method: 'POST' })
  assert.is(restored.status, 200)
  assert.is((await restored.json()).machines, 3)
  assert.is(await desk.machines.count(), 3)
  const removed = await desk.ask(`/ui/backups/${ID}`, { method: 'DELETE' })
  assert.is((await removed.json()).machines, 3)
  assert.is((await desk.ask(`/ui/backups/${ID}`, { method: 'DELETE' })).status, 404)
})

test('no body and an empty one ask for a backup by hand; anything else is 422 with its field', async () => {
  await using desk = await createDesk()
  for (const init of [{ method: 'POST' }, asJson({})]) {
    const answer = await desk.ask('/workers/backups', init)
    assert.is(answer.status, 202)
    assert.is((await answer.json()).trigger, 'manual')
  }
  for (const [body, field] of [
    [{ trigger: 'now' }, 'trigger'],
    [{ extra: 1 }, 'extra'],
  ] as const) {
    const answer = await desk.ask('/workers/backups', asJson(body))
    assert.is(answer.status, 422)
    assert.match(JSON.stringify((await answer.json()).detail), field)
  }
})

test('a finished one is answered as it is; unknown and hostile ids are 404', async () => {
  await using desk = await createDesk()
  await desk.backUp()
  const done = await desk.ask(`/workers/backups/${ID}`, { method: 'DELETE' })
  assert.is((await done.json()).status, 'completed')
  const all = await desk.ask('/workers/backups', { method: 'DELETE' })
  assert.equal(await all.json(), { cancelled: [] }, 'nothing is under way')
  for (const id of ['2020-01-01T00-00-00Z', 'x', '..%2f..%2fstate.db', '%3Cscript%3E']) {
    for (const [path, method] of [
      [`/workers/backups/${id}`, 'DELETE'],
      [`/workers/backups/${id}/restore`, 'POST'],
      [`/ui/backups/${id}/download`, 'GET'],
      [`/ui/backups/${id}`, 'DELETE'],
    ] as const) {
      const answer = await desk.ask(path, { method })
      assert.is(answer.status, 404, `${method} ${path}`)
      assert.not((await answer.text()).includes('<script>'))
    }
  }
  const none = await desk.ask(`/ui/backups/${ID}/download?file=../../state.db`)
  assert.is(none.status, 404)
})

test('nobody without a session', async () => {
  await using desk = await createDesk()
  for (const [path, method] of [
    ['/workers/backups', 'GET'],
    ['/workers/backups', 'POST'],
    [`/workers/backups/${ID}`, 'DELETE'],
    [`/workers/backups/${ID}/restore`, 'POST'],
  ] as const) {
    assert.is((await desk.server.request(path, { method })).status, 401, path)
  }
  assert.equal(desk.backups.jobs(), [])
})

test('a file where the folder should be is said, and a backup fails with the reason', async () => {
  await using desk = await createDesk()
  await desk.backUp()
  await rm(desk.backupDir, { recursive: true })
  await writeFile(desk.backupDir, 'no folder')
  for (const [path, method] of [
    ['/workers/backups', 'GET'],
    [`/workers/backups/${ID}/restore`, 'POST'],
    [`/ui/backups/${ID}/download`, 'GET'],
    [`/ui/backups/${ID}`, 'DELETE'],
  ] as const) {
    const answer = await desk.ask(path, { method })
    assert.is(answer.status, 409, path)
    const text = await answer.text()
    assert.match(text, 'the backup folder is a file', path)
    assert.not.match(text, desk.backupDir, path)
  }
  const job = await (await desk.ask('/workers/backups', asJson({}))).json()
  const ended = await desk.backups.awaitEnd(job.backup_id)
  assert.is(ended?.status, 'failed')
  assert.match(ended?.error ?? '', 'the backup folder is a file')
  await rm(desk.backupDir)
  const listing = await (await desk.ask('/workers/backups')).json()
  assert.equal(listing.stored, [])
})

test.run()
