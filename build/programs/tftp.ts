/** Gathers what machines load by TFTP: `tftp.ts --out DIR NAME=FILE…`. */
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { TFTP_FOLDER } from '../../appliance/contract.ts'
import { layFile } from '../app/lay.ts'

const { values, positionals } = parseArgs({
  options: { out: { type: 'string', default: '' } },
  allowPositionals: true,
})
for (const pair of positionals) {
  const [name = '', from = ''] = pair.split('=')
  const place = join(values.out, TFTP_FOLDER, name)
  await mkdir(dirname(place), { recursive: true })
  await layFile(from, place)
}
