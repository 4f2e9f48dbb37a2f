/** Uploads the file that a form names, with its progress; the page loads anew once it is there. */

function upload(form) {
  const [file] = form.elements.file.files
  const [bar, status] = [form.querySelector('progress'), form.querySelector('[role=status]')]
  const request = new XMLHttpRequest()
  const fail = (text) => {
    bar.hidden = true
    status.textContent = text
  }
  request.open('PUT', form.dataset.upload + encodeURIComponent(file.name))
  request.setRequestHeader('content-type', 'application/octet-stream')
  request.upload.addEventListener('progress', ({ loaded, total }) => {
    bar.value = total > 0 ? loaded / total : 0
    status.textContent = `${Math.floor(100 * bar.value)} %`
  })
  request.addEventListener('load', () => {
    if (request.status === 200) location.reload()
    else fail(detailOf(request.responseText) ?? `The upload failed (${request.status}).`)
  })
  request.addEventListener('error', () => fail('The connection broke off; nothing was changed.'))
  bar.hidden = false
  request.send(file)
}

function detailOf(text) {
  try {
    const { detail } = JSON.parse(text)
    return typeof detail === 'string' ? detail : null
  } catch {
    return null
  }
}

export function startUploads() {
  document.addEventListener('submit', (event) => {
    if (event.target.dataset.upload === undefined) return
    event.preventDefault()
    upload(event.target)
  })
}
