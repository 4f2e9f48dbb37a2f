/** What a server promises of a database that is away: it is said once, and nothing that was acknowledged is lost. */
import { setTimeout as sleep } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { macOf } from '../server/state.ts'
import { startPostgres } from './postgres.ts'
import { askAs, startServer, until } from './servers.ts'

export const label = (text: string) => ({
  method: 'PUT',
  body: JSON.stringify({ labels: [text] }),
})
const AWAY = /the socket of the database is not there.*Nothing is lost/g

interface Away {
  /** Milliseconds for which it is away once the server has said so at its start. */
  readonly startMs: number
  /** And later, once a change was refused. */
  readonly laterMs: number
  readonly env: Readonly<Record<string, string>>
}

export async function proveAway({ startMs, laterMs, env }: Away): Promise<void> {
  await using postgres = await startPostgres()
  const url = postgres.urlOf(await postgres.create())
  await postgres.stop()
  await using server = await startServer(url, env)
  await server.process().saw('the socket of the database is not there')
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
  assert.is((await fetch(`${server.url}/healthz?ready`)).status, 503)
  assert.is((await fetch(`${server.url}/pxe-bootstrap.ipxe`)).status, 200)
  // It is asked again and again meanwhile.
  await sleep(startMs)
  await postgres.start()
  await server.leads()
  const ask = await askAs(server)
  assert.is((await ask(`/machines/${macOf(1)}`, label('before'))).status, 200)

  await postgres.stop('SIGQUIT')
  const [edit, script] = await Promise.all([
    ask(`/machines/${macOf(2)}`, label('meanwhile')),
    fetch(`${server.url}/pxe/${macOf(1)}`),
  ])
  assert.is(edit.status, 503)
  assert.is(edit.headers.get('retry-after'), '2')
  assert.match(await script.text(), /no server leads this fleet/)
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
  await sleep(laterMs)
  await postgres.start()
  // A session is judged by a database that answers.
  await until(
    async () => (await ask(`/machines/${macOf(3)}`, label('after'))).status === 200,
    60_000,
  )
  assert.equal((await (await ask(`/machines/${macOf(1)}`)).json()).labels, ['before'])
  server.kill('SIGTERM')
  const { code, stderr } = await server.process().ended
  assert.is(code, 0)
  const countOf = (saying: RegExp) => [...stderr.matchAll(saying)].length
  assert.is(countOf(AWAY), 2)
  assert.is(countOf(/the database answers again/g), 1)
}
