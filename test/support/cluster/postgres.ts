/** A PostgreSQL of the test's own, as another user and on a Unix socket, and a wire to it that can be cut, held and slowed. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { opened, type Suite } from '../opened.ts'
import { askForPostgres } from '../runner/slots.ts'
import { openWireTo } from './wire.ts'

const BIN = '/usr/lib/postgresql/15/bin'
const idOf = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }))

export type Postgres = Awaited<ReturnType<typeof startPostgres>>

interface PostgresOptions {
  /** What its configuration says besides, as `name=value`. */
  readonly settings?: readonly string[]
  readonly port?: number
  /** Another one of these, of which it becomes a standby; absent: it begins empty. */
  readonly follows?: { readonly dir: string }
}

export async function startPostgres({ settings = [], port = 5432, follows }: PostgresOptions = {}) {
  const who = { uid: idOf('-u'), gid: idOf('-g') }
  const ends = [
    '--pdeathsig',
    'QUIT',
    '--reuid',
    'postgres',
    '--regid',
    'postgres',
    '--clear-groups',
  ]
  const dir = await mkdtemp(join(tmpdir(), 'flasher-pg-'))
  await chmod(dir, 0o777)
  const data = join(dir, 'data')
  if (follows === undefined) {
    const init = ['-D', data, '-U', 'flasher', '--auth=trust', '-N', '-E', 'UTF8', '--locale=C']
    execFileSync(`${BIN}/initdb`, init, { ...who, stdio: 'ignore' })
  } else {
    const copy = ['-h', follows.dir, '-U', 'flasher', '-D', data, '-R', '-c', 'fast']
    execFileSync(`${BIN}/pg_basebackup`, copy, { ...who, stdio: 'ignore' })
  }
  let child = await start()

  async function start(): Promise<ChildProcess> {
    const options = [
      '-D',
      data,
      '-k',
      dir,
      ...[`port=${port}`, 'listen_addresses=', ...settings].flatMap((each) => ['-c', each]),
    ]
    const program = [...ends, `${BIN}/postgres`, ...options]
    const started = spawn('setpriv', program, { stdio: 'ignore' })
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const client = new Client({ host: dir, port, user: 'flasher', database: 'postgres' })
      client.on('error', () => undefined)
      const answers = await client.connect().then(
        () => true,
        () => false,
      )
      await client.end().catch(() => undefined)
      if (answers) return started
      await sleep(50)
    }
    started.kill('SIGQUIT')
    throw new Error('PostgreSQL did not start')
  }

  async function stop(signal: NodeJS.Signals = 'SIGINT') {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  return {
    ...reach(dir, port),
    data,
    stop,
    async restart() {
      await stop()
      child = await start()
    },
    async start() {
      child = await start()
    },
    async [Symbol.asyncDispose]() {
      await stop('SIGQUIT')
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** A server that runs already: how it is asked, and databases of one's own. */
function reach(dir: string, port: number, prefix = 'fleet') {
  const urlOf = (name: string) => `postgres://flasher@localhost/${name}?host=${dir}&port=${port}`
  async function query(name: string, text: string) {
    const client = new Client(urlOf(name))
    await client.connect()
    try {
      return (await client.query<Record<string, unknown>>(text)).rows
    } finally {
      await client.end()
    }
  }

  let made = 0
  return {
    dir,
    urlOf,
    query,
    /** A fresh database; returns its name. */
    async create(): Promise<string> {
      made += 1
      const name = `${prefix}_${made}`
      await query('postgres', `CREATE DATABASE ${name}`)
      return name
    },
  }
}

export type Databases = ReturnType<typeof lendDatabases>

/**
 * Databases for a suite that neither ends their server nor changes it: on the server of the slot in which the
 * file runs, or on one of its own where it runs alone.
 */
export function lendDatabases(test: Suite) {
  const server = opened(test, async () => {
    const slot = process.env['FLASHER_TEST_SLOT']
    return slot === undefined ? startPostgres() : borrow(await askForPostgres(slot))
  })
  return {
    get dir() {
      return server().dir
    },
    urlOf: (name: string) => server().urlOf(name),
    query: (name: string, text: string) => server().query(name, text),
    create: () => server().create(),
  }
}

function borrow({ dir, prefix }: { readonly dir: string; readonly prefix: string }) {
  const server = reach(dir, 5432, prefix)
  const names: string[] = []
  return {
    ...server,
    async create() {
      const name = await server.create()
      names.push(name)
      return name
    },
    async [Symbol.asyncDispose]() {
      for (const name of names) {
        await server.query('postgres', `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
      }
    },
  }
}

/** A loopback address in front of the socket. */
export async function openWire({ dir }: Pick<Postgres, 'dir'>, name: string) {
  const wire = await openWireTo(() => connect(join(dir, '.s.PGSQL.5432')))
  return {
    ...wire,
    url: `postgres://flasher@127.0.0.1:${wire.port}/${name}?sslmode=disable`,
  }
}
