// Entry point for notebooks, which import it and call render, and pages, which start by themselves.
import { boot } from "./page.js";
import { render } from "./widget.js";

if (document.documentElement.dataset.mercat === "page") boot();

export default { render };
