/** `flasher completion` and `flasher manual`: print texts generated from the command table. */
import { shellOf } from '#kit/terminal/command/rules/command.ts'
import { renderCompletion } from '#kit/terminal/command/completion.ts'
import { renderManual } from '#kit/terminal/command/manual.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import type { CommandSession } from './session.ts'

/** Completes for bash unless a shell is named. */
export async function completion(session: CommandSession): Promise<number> {
  const { given, environment, line, json, document } = session
  const shell = shellOf(given.positionals)
  const script = renderCompletion(line, shell)
  if (json) document({ shell, script })
  else environment.stdout.write(script)
  return SUCCESS
}

export async function manual(session: CommandSession): Promise<number> {
  const { environment, line, json, document } = session
  const page = renderManual(line)
  if (json) document({ manual: page })
  else environment.stdout.write(page)
  return SUCCESS
}
