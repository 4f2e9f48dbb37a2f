/** `flasher inspect image`. */
import { createImages } from '../../../services/images.ts'
import { createShell } from '../../../services/shell.ts'
import { untilAborted } from '../../../services/watch.ts'
import { renderRecord } from '../../../terminal/table.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import type { Session } from './session.ts'

export async function inspectImage({ given, world, json, document }: Session): Promise<number> {
  const [path = ''] = given.positionals
  const { inspect } = createImages({ shell: createShell({ env: world.env }) })
  const image = await untilAborted(world.signal, inspect(path))
  if (json) document({ image })
  else world.stdout.write(renderRecord(image))
  return SUCCESS
}
