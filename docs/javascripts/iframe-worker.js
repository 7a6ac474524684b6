// Search from disk: browsers refuse workers on file:// pages, so a hidden frame does their work.
// The name of this file tells mkdocs-material that nothing has to be fetched for it.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><html><body></body></html>");
      inside.document.close();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(inside, next, url)), Promise.resolve());
      load(inside, url, location.href).then(() => {
        this.ready = true;
        this.waiting.splice(0).forEach((data) => this.postMessage(data));
      });
    }
    postMessage(data) {
      if (!this.ready) {
        this.waiting.push(data);
        return;
      }
      const inside = this.frame.contentWindow;
      inside.dispatchEvent(new inside.MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
}

function load(inside, url, base) {
  return new Promise((done, failed) => {
    const script = inside.document.createElement("script");
    script.src = new URL(url, base).href;
    script.onload = done;
    script.onerror = failed;
    inside.document.body.appendChild(script);
  });
}
