/**
 * Lives through a run of tests and lends what is expensive to open to the files that run in it, one after
 * another: `slot.ts SOCKET`. It says `ready` once it listens, and ends with its standard input. A connection is
 * one question, a line, which has a line as its answer: `{"open":"postgres"}` the folder of the server and how the
 * names of databases begin, `{"check":true}` what the last file left behind; that is removed.
 */
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import type { Postgres } from '../cluster/postgres.ts'

const QuestionSchema = z.union([
  z.strictObject({ open: z.literal('postgres') }),
  z.strictObject({ check: z.literal(true) }),
])
/** What is in it is of no use after a crash of the host. */
const SETTINGS = ['fsync=off', 'full_page_writes=off']
const FOREIGN_DATABASES =
  "SELECT datname AS name FROM pg_database WHERE NOT datistemplate AND datname <> 'postgres' ORDER BY 1"
const FOREIGN_ROLES =
  "SELECT rolname AS name FROM pg_roles WHERE rolname <> 'flasher' AND rolname !~ '^pg_' ORDER BY 1"

const [path = ''] = process.argv.slice(2)
let postgres: Postgres | null = null
let lent = 0
/** No question is looked at before the one before it has its answer. */
let turn: Promise<unknown> = Promise.resolve()

const server = createServer((socket) => {
  socket.on('error', () => socket.destroy())
  createInterface(socket).once('line', (line) => {
    turn = turn.then(async () => {
      const said = await answer(line).catch((thrown: unknown) => ({ error: String(thrown) }))
      socket.end(`${JSON.stringify(said)}\n`)
    })
  })
})
server.listen(path, () => console.log('ready'))
process.once('SIGTERM', () => void end())
// The key that interrupts a run sends this to all of its processes; the runner asks once more, and ends this one.
process.on('SIGINT', () => undefined)
process.stdin.resume().once('close', () => void end())

async function answer(line: string): Promise<object> {
  const question = QuestionSchema.parse(JSON.parse(line))
  if ('check' in question) return { left: await removeLeft() }
  if (postgres !== null && !(await answers(postgres))) await endPostgres()
  postgres ??= await startPostgres()
  lent += 1
  return { dir: postgres.dir, prefix: `fleet_${lent}` }
}

/** Loaded when a file first asks: a run of rules never does. */
async function startPostgres(): Promise<Postgres> {
  const postgresql = await import('../cluster/postgres.ts')
  return postgresql.startPostgres({ settings: SETTINGS })
}

const answers = ({ query }: Postgres) =>
  query('postgres', 'SELECT 1').then(
    () => true,
    () => false,
  )

/** Databases and roles that the last file made; none where it ended the server. */
async function removeLeft(): Promise<readonly string[]> {
  if (postgres === null) return []
  if (!(await answers(postgres))) {
    await endPostgres()
    return ['a PostgreSQL that has ended']
  }
  const { query } = postgres
  const left: string[] = []
  for (const { name } of await query('postgres', FOREIGN_DATABASES)) {
    await query('postgres', `DROP DATABASE "${String(name)}" WITH (FORCE)`)
    left.push(`database ${String(name)}`)
  }
  for (const { name } of await query('postgres', FOREIGN_ROLES)) {
    await query('postgres', `DROP ROLE "${String(name)}"`)
    left.push(`role ${String(name)}`)
  }
  return left
}

async function endPostgres() {
  const ending = postgres
  postgres = null
  await ending?.[Symbol.asyncDispose]()
}

async function end() {
  server.close()
  await turn
  await endPostgres()
  process.exit()
}
