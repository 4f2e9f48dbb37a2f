/** Reads the trusted TLS authorities: Node's own, and those of FLASHER_CA_FILE. */
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { getCACertificates } from 'node:tls'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { Environment } from '#kit/host/shell.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * Returns PEM texts for a TLS agent's `ca`; undefined stands for Node's own (which know
 * NODE_EXTRA_CA_CERTS). Rejects with a Fault where FLASHER_CA_FILE cannot be read or used.
 */
export async function readAuthorities(env: Environment): Promise<string[] | undefined> {
  const path = env['FLASHER_CA_FILE'] ?? ''
  if (path === '') return undefined
  const bundle = await readFile(path, 'latin1').catch((cause: unknown) => {
    const words = `FLASHER_CA_FILE cannot be read: ${renderError(cause)}`
    throw new Fault('input-missing', words, { cause })
  })
  const added = bundle.match(CERTIFICATE) ?? []
  if (added.length === 0) throw unusable(path, 'it holds no PEM certificate')
  for (const pem of added) checkCertificate(path, pem)
  return [...getCACertificates('default'), ...added]
}

function checkCertificate(path: string, pem: string): void {
  try {
    void new X509Certificate(pem)
  } catch (cause) {
    throw unusable(path, `a certificate in it is damaged (${renderError(cause)})`)
  }
}

const unusable = (path: string, why: string) =>
  new Fault('input-invalid', `FLASHER_CA_FILE cannot be used: ${path}: ${why}`)
