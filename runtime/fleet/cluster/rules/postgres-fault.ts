/** What an error of PostgreSQL, or of the way to it, means: whose fault it is, in a sentence, and how to fix it. */

export interface PostgresTrouble {
  /**
   * `settings`: until an operator changes something; `away`: may pass; `rows`: these rows cannot be
   * stored; `late`: undone, as they took too long; `room`: no room for anything, and the session
   * goes on.
   */
  readonly kind: 'settings' | 'away' | 'rows' | 'late' | 'room'
  readonly message: string
  readonly hint: string
}

type TroubleMeaning = readonly [kind: PostgresTrouble['kind'], message: string, hint: string]

const LATER = 'Nothing is lost. The server resumes as soon as the database is back.'
const PRIVILEGES: TroubleMeaning = [
  'settings',
  'the user of database.url may not do what this server needs',
  'GRANT CREATE ON DATABASE … TO …; once the tables are there, their owner needs no more than that.',
]
const POOLER: TroubleMeaning = [
  'settings',
  'a connection pooler such as PgBouncer answers at database.url, but this server needs a direct connection',
  'Let database.url name PostgreSQL itself (its own port, usually 5432).',
]
const TLS_NAME: TroubleMeaning = [
  'settings',
  'the certificate of the database server is for another name',
  'Use the name in its certificate in database.url.',
]
const TLS_FILE: TroubleMeaning = [
  'settings',
  'a file that database.url names cannot be read',
  'Correct sslrootcert, sslcert or sslkey in database.url.',
]
const TLS_ISSUER: TroubleMeaning = [
  'settings',
  'the certificate of the database server was issued by an authority that this host does not trust',
  'Name the certificate of its authority with sslrootcert=/path/ca.pem in database.url.',
]

/** By SQLSTATE or Node's error code, after its call where that matters. */
const MEANINGS: Readonly<Record<string, TroubleMeaning>> = {
  '28P01': [
    'settings',
    'the database refused the password',
    'Correct it in database.url or in the file of database.password_file.',
  ],
  '28000': [
    'settings',
    'the database does not let this user in from here',
    'Add a line to its pg_hba.conf, or use another user in database.url.',
  ],
  '3D000': [
    'settings',
    'there is no database of that name',
    'Create it (createdb), or correct database.url.',
  ],
  '42501': PRIVILEGES,
  '25006': [
    'away',
    'the database is read-only, or a standby',
    'Let database.url name the primary. Several hosts are not tried: use the address that follows the primary.',
  ],
  '53100': ['room', 'the disk of the database is full', `Free space on that disk. ${LATER}`],
  '53300': ['away', 'the database has no connection left', `Raise max_connections. ${LATER}`],
  '57014': ['late', 'the database did not finish in time', LATER],
  '57P01': ['away', 'the database was shut down', LATER],
  '57P03': ['away', 'the database is starting or stopping', LATER],
  '42704': [
    'settings',
    'this PostgreSQL lacks a setting that this server needs',
    'Use PostgreSQL 13 or later.',
  ],
  '08P01': POOLER,
  pooler: POOLER,
  'connect ENOENT': ['away', 'the socket of the database is not there', LATER],
  'open ENOENT': TLS_FILE,
  'open EACCES': TLS_FILE,
  ECONNREFUSED: ['away', 'nothing answers at the address of the database', LATER],
  ECONNRESET: ['away', 'the database ended the connection', LATER],
  ENOTFOUND: ['away', 'the name of the database server is unknown', LATER],
  EAI_AGAIN: ['away', 'the name of the database server cannot be looked up', LATER],
  EHOSTUNREACH: ['away', 'the database server cannot be reached', LATER],
  ETIMEDOUT: ['away', 'the database server does not answer', LATER],
  ERR_TLS_CERT_ALTNAME_INVALID: TLS_NAME,
  DEPTH_ZERO_SELF_SIGNED_CERT: TLS_ISSUER,
  SELF_SIGNED_CERT_IN_CHAIN: TLS_ISSUER,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TLS_ISSUER,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TLS_ISSUER,
}

/** SQLSTATE classes: values that no column takes, clashing keys, and limits. */
const OF_ROWS = /^(22|23|54)/

export function describePostgresError(thrown: unknown): PostgresTrouble {
  const { code, call, text } = readThrown(thrown)
  const known = MEANINGS[code] ?? MEANINGS[`${call} ${code}`]
  if (known !== undefined) {
    const [kind, message, hint] = known
    return { kind, message: `${message} (${text})`, hint }
  }
  if (OF_ROWS.test(code)) {
    return {
      kind: 'rows',
      message: `the database cannot store this: ${text}`,
      hint: 'Nothing of this change was stored.',
    }
  }
  if (/does not support SSL/i.test(text)) {
    const hint = 'Turn TLS on in postgresql.conf, or remove sslmode from database.url.'
    return { kind: 'settings', message: 'the database server speaks no TLS', hint }
  }
  return { kind: 'away', message: `the database does not answer (${text})`, hint: LATER }
}

interface ThrownError {
  readonly code: string
  readonly call: string
  readonly text: string
}

function readThrown(thrown: unknown): ThrownError {
  if (!(thrown instanceof Error)) return { code: '', call: '', text: String(thrown) }
  const code = 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
  const call = 'syscall' in thrown && typeof thrown.syscall === 'string' ? thrown.syscall : ''
  // A host with several addresses fails with an error for each.
  if (thrown instanceof AggregateError && thrown.message === '') {
    return { code, call, text: readThrown(thrown.errors[0]).text }
  }
  return { code, call, text: thrown.message }
}
