import { execFileSync, spawn } from 'node:child_process'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'
import { faultOf } from '#test/support/server/state.ts'

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
    'nobody that this host trusts',
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
  assert.match(await refusalOf(`${tcp}/${name}`), 'no-leader: the database takes no writes')
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

test.run()
