import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { TIMES } from '#fleet/cluster/rules/lease.ts'
import { openFreshMember, untilSaid } from '#test/support/cluster/members.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { mountDisk } from '#test/support/cluster/small-disk.ts'
import { SHORT_LEASE } from '#test/support/cluster/times.ts'
import { readBlocks } from '#test/support/docs.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'
import { faultOf, machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('databases that cannot be used')
const lab = opened(test, async (stack) => {
  const { path: dir } = stack.use(await mkdtempDisposable(join(tmpdir(), 'flasher-pg-tls-')))
  const at = (name: string) => join(dir, name)
  const port = await findPort()
  const certify = [
    ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2'],
    ['-keyout', at('key.pem'), '-out', at('cert.pem'), '-subj', '/CN=db.example.org'],
    ['-addext', 'subjectAltName=DNS:db.example.org'],
  ].flat()
  execFileSync('openssl', certify, { stdio: 'ignore' })
  execFileSync('chown', ['-R', 'postgres:', dir])
  const tls = ['ssl=on', `ssl_cert_file=${at('cert.pem')}`, `ssl_key_file=${at('key.pem')}`]
  const settings = ['listen_addresses=127.0.0.1', ...tls]
  const postgres = stack.use(await startPostgres({ settings, port }))
  const tcp = `postgres://flasher:secret-word@127.0.0.1:${port}`
  return { at, port, postgres, tcp }
})
const refusalOf = async (url: string) => {
  const fault = await faultOf(openSession(url))
  assert.not.match(`${fault.message} ${fault.hint}`, 'secret-word', 'no password in a message')
  return `${fault.code}: ${fault.message}`
}

test('a certificate for another name, and one of an unknown authority', async () => {
  const { at, tcp } = lab()
  assert.match(
    await refusalOf(`${tcp}/postgres?sslmode=verify-full&sslrootcert=${at('cert.pem')}`),
    'input-invalid: the certificate of the database server is for another name',
  )
  assert.match(
    await refusalOf(`${tcp}/postgres?sslmode=verify-full`),
    'an authority that this host does not trust',
  )
})

test('a wrong password, a user that may not come in, a database that is not there', async () => {
  const { postgres, tcp } = lab()
  await postgres.query('postgres', `CREATE ROLE other LOGIN PASSWORD 'right'`)
  const hba = join(postgres.data, 'pg_hba.conf')
  const before = readFileSync(hba, 'utf8')
  writeFileSync(hba, `host all other 127.0.0.1/32 scram-sha-256\n${before}`)
  await postgres.query('postgres', 'SELECT pg_reload_conf()')
  await sleep(300)
  const other = tcp.replace('flasher:', 'other:')
  assert.match(
    await refusalOf(`${other}/postgres`),
    'input-invalid: the database refused the password',
  )
  assert.match(
    await refusalOf(`${tcp}/nowhere`),
    'input-invalid: there is no database of that name',
  )
  appendFileSync(hba, '')
})

test('a database whose encoding cannot hold every text, with the command that makes a right one', async () => {
  const { port, postgres, tcp } = lab()
  for (const encoding of ['LATIN1', 'SQL_ASCII', 'EUC_JP']) {
    const name = `Old ${encoding}`
    const wish = `ENCODING '${encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`
    await postgres.query('postgres', `CREATE DATABASE "${name}" OWNER flasher ${wish}`)
    const fault = await faultOf(openSession(`${tcp}/${encodeURIComponent(name)}`))
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, `the encoding ${encoding}, which cannot hold every text`)
    const [, command = ''] = /(createdb .*)$/.exec(fault.hint ?? '') ?? []
    execFileSync('bash', ['-c', `${command} -h ${postgres.dir} -p ${port} -U flasher`])
    const made = await openSession(`${tcp}/${encodeURIComponent(`${name}_utf8`)}`)
    await made[Symbol.asyncDispose]()
  }
})

test('a database that takes no writes, and nobody at the address', async () => {
  const { postgres, tcp } = lab()
  const name = await postgres.create()
  await postgres.query('postgres', `ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  assert.match(await refusalOf(`${tcp}/${name}`), 'no-leader: the database is read-only')
  assert.match(
    await refusalOf(`postgres://flasher@127.0.0.1:${await findPort()}/x`),
    'no-leader: nothing answers at the address',
  )
})

test('a user that may make no tables', async () => {
  const { postgres, tcp } = lab()
  const name = await postgres.create()
  await postgres.query('postgres', 'CREATE ROLE poor LOGIN')
  const fault = await faultOf(openFreshMember(`${tcp.replace('flasher:', 'poor:')}/${name}`))
  assert.is(fault.code, 'input-invalid')
  assert.match(fault.message, 'may not do what this server needs')
})

test('PgBouncer, by name', async () => {
  const { at, port, postgres } = lab()
  const name = await postgres.create()
  const bouncer = await findPort()
  writeFileSync(
    at('bouncer.ini'),
    `[databases]\n${name} = host=${postgres.dir} port=${port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${bouncer}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n`,
  )
  execFileSync('chown', ['postgres:', at('bouncer.ini')])
  const argv = ['--reuid', 'postgres', '--clear-groups', '/usr/sbin/pgbouncer', at('bouncer.ini')]
  const child = spawn('setpriv', argv, { stdio: 'ignore' })
  try {
    const url = `postgres://flasher@127.0.0.1:${bouncer}/${name}`
    let refusal = await refusalOf(url)
    for (let tries = 0; /nothing answers/.test(refusal) && tries < 40; tries += 1) {
      await sleep(100)
      refusal = await refusalOf(url)
    }
    assert.match(refusal, 'input-invalid: a connection pooler such as PgBouncer answers')
  } finally {
    child.kill('SIGKILL')
  }
})

test('a database of the other release line', async () => {
  const { postgres, tcp } = lab()
  const name = await postgres.create()
  const url = `${tcp}/${name}`
  await (await openFreshMember(url, { line: 'earlier' }))[Symbol.asyncDispose]()
  const fault = await faultOf(openFreshMember(url))
  assert.match(fault.message, 'belongs to the earlier release line')
})

const postgres = opened(test, () => startPostgres())

const END_SESSIONS = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  AND application_name = 'flasher-web'`

test('a standby of PostgreSQL is refused with a sentence, and used once it is the primary', async () => {
  const name = await postgres().create()
  await using replica = await startPostgres({ follows: postgres() })
  const url = replica.urlOf(name)
  const fault = await faultOf(openSession(url))
  assert.match(fault.message, 'the database is read-only, or a standby')
  assert.match(fault.hint ?? '', 'Let database.url name the primary')
  // A server waits for it, and leads once PostgreSQL has failed over.
  const waiting = openFreshMember(url, { patience: 'wait' })
  await sleep(1500)
  await replica.query('postgres', 'SELECT pg_promote()')
  await using member = await waiting
  assert.is(await member.machines.commit(macOf(1), null, machineOf(1)), true)
})

test('a database that becomes read-only makes changes wait, and nothing is lost', async () => {
  const name = await postgres().create()
  await using member = await openFreshMember(postgres().urlOf(name))
  await member.machines.commit(macOf(1), null, machineOf(1))
  const set = (value: string) =>
    postgres().query(
      'postgres',
      `ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`,
    )
  await set('on')
  await postgres().query('postgres', END_SESSIONS)
  const stored = member.machines.commit(macOf(2), null, machineOf(2))
  await untilSaid(member, 'the database is read-only')
  assert.is(member.machines.peek(macOf(2)), null)
  await set('off')
  assert.is(await stored, true)
  assert.match(member.said.join('\n'), 'answers again')
  assert.equal(member.ended, [])
})

const fullLab = opened(test, async (stack) => {
  const own = stack.use(await startPostgres())
  const folder = `${own.dir}/space`
  const disk = stack.use(await mountDisk(folder, 64, 'postgres'))
  stack.defer(() => own.stop('SIGQUIT'))
  return { postgres: own, folder, disk }
})

/** A lease that is not renewed for so long would be taken. */
const FULL_MS = 1.5 * SHORT_LEASE.leaseMs
const times = { ...TIMES, ...SHORT_LEASE }

test('a full disk of the database makes changes wait: nothing is lost, nobody takes over, and it is said once', async () => {
  const { postgres: own, folder, disk } = fullLab()
  await own.query('postgres', `CREATE TABLESPACE small LOCATION '${folder}'`)
  await own.query('postgres', 'CREATE DATABASE small TABLESPACE small')
  const url = own.urlOf('small')
  await using leader = await openFreshMember(url, { times })
  await leader.machines.commit(macOf(1), null, machineOf(1))
  const leaving = new AbortController()
  const member = { id: 'b', name: 'b', release: '', url: 'http://b' }
  const options = { patience: 'wait', signal: leaving.signal, member, times } as const
  const standby = openFreshMember(url, options).catch(() => null)
  await disk.fill()
  const tree = JSON.stringify({ id: 'x'.repeat(200_000) })
  let isStored = false
  const stored = leader.machines
    .saveHardware(macOf(1), Buffer.from(`${tree}${crypto.randomUUID()}`), '2026-01-01T00:00:00Z')
    .then(() => {
      isStored = true
    })
  const many = Array.from({ length: 300 }, (_, at) =>
    leader.machines.commit(macOf(at + 2), null, machineOf(at + 2)),
  )
  await sleep(FULL_MS)
  assert.is(isStored && (await Promise.all(many)).every(Boolean), false, 'there was room')
  await disk.empty()
  await stored
  assert.ok((await Promise.all(many)).every(Boolean))
  assert.equal(leader.ended, [])
  const said = leader.said.filter((line) => line.includes('disk of the database is full'))
  assert.is(said.length, 1, leader.said.join('\n'))
  const [lease] = await own.query('small', 'SELECT epoch::int FROM flasher.lease')
  assert.is(lease?.['epoch'], 1)
  const [counted] = await own.query('small', 'SELECT count(*)::int AS n FROM flasher.machines')
  assert.is(counted?.['n'], 301)
  leaving.abort()
  await standby
})

/** The documented lines, for a user and a database of this name; the user `flasher` of the tests may do everything. */
async function grant(name: string, change: (text: string) => string = (text) => text) {
  const [block = ''] = readBlocks('growing.md', 'sql')
  const lines = change(block)
    .replaceAll(/\bflasher\b/g, name)
    .split(/;\n/)
  assert.ok(lines.length > 4)
  for (const line of lines) await postgres().query('postgres', line)
  return postgres().urlOf(name).replace('//flasher@', `//${name}@`)
}

test('the documented user makes its tables, leads, and does without CREATE afterwards', async () => {
  const url = await grant('plain')
  {
    await using first = await openFreshMember(url)
    assert.ok(first.leader.lease.epoch > 0)
  }
  await postgres().query('postgres', 'REVOKE CREATE ON DATABASE plain FROM plain')
  await using again = await openFreshMember(url)
  assert.ok(again.leader.lease.epoch > 1)
  const [role] = await postgres().query(
    'postgres',
    `SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication AS more FROM pg_roles WHERE rolname = 'plain'`,
  )
  assert.is(role?.['more'], false)
})

test('without CREATE a first start says what to grant', async () => {
  const url = await grant('poor', (text) => text.replace('CONNECT, CREATE', 'CONNECT'))
  const fault = await faultOf(openFreshMember(url))
  assert.match(fault.message, 'may not do what this server needs')
  assert.match(fault.hint ?? '', 'GRANT CREATE ON DATABASE')
})

test.run()
