/** A certificate authority of a test's own, and a certificate for 127.0.0.1 signed by it. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createShell } from '#kit/host/shell.ts'
import type { Certificate } from './hostile-server.ts'

export interface Authority {
  /** The authority's certificate as a PEM file. */
  readonly caFile: string
  readonly certificate: Certificate
}

/** Makes an authority and the certificate of a server with openssl; the files stay in `folder`. */
export async function makeAuthority(folder: string): Promise<Authority> {
  const at = (name: string) => join(folder, name)
  const shell = createShell({ env: process.env })
  const openssl = (text: string) => shell.require(['openssl', ...text.split(' ')])
  const request = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2'
  const names = 'subjectAltName=IP:127.0.0.1,DNS:files.test'
  await writeFile(at('empty.cnf'), '[req]\ndistinguished_name = dn\n[dn]\n')
  await openssl(`${request} -subj /CN=authority -keyout ${at('ca.key')} -out ${at('ca.pem')}`)
  await openssl(
    `${request} -config ${at('empty.cnf')} -subj /CN=server -addext ${names}` +
      ` -addext basicConstraints=critical,CA:FALSE -CA ${at('ca.pem')} -CAkey ${at('ca.key')}` +
      ` -keyout ${at('server.key')} -out ${at('server.pem')}`,
  )
  const [key, cert] = await Promise.all(
    ['server.key', 'server.pem'].map((name) => readFile(at(name), 'utf8')),
  )
  return { caFile: at('ca.pem'), certificate: { key: key ?? '', cert: cert ?? '' } }
}
